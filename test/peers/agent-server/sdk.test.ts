import { Client } from '@langchain/langgraph-sdk';
import { expect, it, onTestFinished } from 'vitest';
import { createPlatform } from '#src/testing.ts';
import { readAll } from '../../support/read-all.ts';
import { ask, weather } from '../../testing/agent-calls.ts';

async function connect() {
  const platform = await createPlatform({ assistants: { agent: weather } });
  onTestFinished(() => platform.close());
  return new Client({ apiUrl: platform.agentUrl, apiKey: platform.apiKey });
}

const { input } = ask('weather?');

it("the client of LangGraph's SDK finds assistants, and streams runs with feedback URLs", async () => {
  const client = await connect();
  const [assistant] = await client.assistants.search({ graphId: 'agent', metadata: {}, limit: 1 });
  const { thread_id } = await client.threads.create({ metadata: { a: 1 }, graphId: 'agent' });
  let created: unknown;
  const options = { input, streamMode: ['updates', 'messages-tuple'] as const, feedbackKeys: ['liked'] };
  const onRunCreated = (run: unknown) => {
    created = run;
  };

  const events = await readAll(
    client.runs.stream(thread_id, String(assistant?.assistant_id), {
      ...options,
      streamMode: [...options.streamMode],
      onRunCreated,
    }),
  );

  expect(new Set(events.map(({ event }) => event))).toEqual(new Set(['metadata', 'messages', 'updates', 'feedback']));
  expect(events.at(-1)).toMatchObject({
    event: 'feedback',
    data: { liked: expect.stringContaining('/feedback/tokens/') },
  });
  expect(created).toEqual({ run_id: expect.any(String), thread_id });
  expect(events[0]).toMatchObject({ event: 'metadata', data: { run_id: (created as { run_id: string }).run_id } });
  expect(await client.threads.search({ metadata: { a: 1 } })).toMatchObject([{ thread_id, status: 'idle' }]);
});

it("the client of LangGraph's SDK waits for runs, answers a question, and reads the history", async () => {
  const client = await connect();
  const { thread_id } = await client.threads.create();
  const asked = await client.runs.wait(thread_id, 'agent', ask('approve'));
  expect(asked).toMatchObject({ __interrupt__: [{ value: { question: 'May I?' } }] });
  const answered = await client.runs.wait(thread_id, 'agent', { command: { resume: 'yes' } });
  expect(answered).toMatchObject({ messages: [{}, { content: 'You said yes.' }] });
  const { values, checkpoint } = await client.threads.getState(thread_id);
  expect(values).toEqual(answered);
  const [latest] = await client.threads.getHistory(thread_id, { limit: 1 });
  expect(latest?.checkpoint).toEqual(checkpoint);
  await expect(client.runs.wait(thread_id, 'agent', ask('fail'))).rejects.toThrow('RangeError: no such city');
});

it("the client of LangGraph's SDK joins and cancels runs", async () => {
  const client = await connect();
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, 'agent', { input, streamResumable: true });
  expect(await client.runs.join(thread_id, run_id)).toHaveProperty('messages');
  const events = await readAll(client.runs.joinStream(thread_id, run_id, { lastEventId: '-1' }));
  expect(events[0]).toMatchObject({ id: '0', event: 'metadata', data: { run_id } });
  const waiting = await client.runs.create(thread_id, 'agent', ask('wait'));
  await client.runs.cancel(thread_id, waiting.run_id, true);
  expect(await client.runs.list(thread_id, { status: 'interrupted' })).toMatchObject([{ run_id: waiting.run_id }]);
  await expect(client.threads.get(run_id)).rejects.toMatchObject({ status: 404 });
});
