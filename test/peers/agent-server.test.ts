import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentEvent, AgentServer } from '#src/clients.ts';
import { createReceiver } from '#src/receiver.ts';
import { type Agents, startAgents } from './agent-server/agents.ts';
import { answers } from './agent-server/calls.ts';
import { cutBehind } from './agent-server/cut.ts';

const ask = (content: string) =>
  ({ assistant_id: 'agent', input: { messages: [{ type: 'human', content }] } }) as const;

let receiver: Awaited<ReturnType<typeof createReceiver>>;
let agents: Agents;
let url: string;
let server: AgentServer;

beforeAll(async () => {
  receiver = await createReceiver({ port: 0 });
  agents = await startAgents(receiver.url);
  url = agents.url;
  server = new AgentServer({ url });
});

afterAll(async () => {
  await server?.close();
  await agents?.stop();
  await receiver.close();
});

async function all(stream: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe('the in-memory agent server', () => {
  it.each(Object.entries(answers))('answers the calls of %s', async (_, holds) => {
    await holds(server);
  });

  it('streams every mode, with the namespace of the subgraph', async () => {
    const { thread_id } = await server.threads.create();
    const modes = ['values', 'updates', 'messages', 'messages-tuple', 'events', 'tasks', 'debug', 'custom'] as const;
    const run = { ...ask('weather?'), stream_mode: modes, stream_subgraphs: true };

    const events = await all(await server.runs.stream(thread_id, run));

    const kinds = new Set(events.map(({ event }) => event));
    const expected = ['metadata', 'values', 'updates', 'messages', 'messages/metadata', 'messages/partial'];
    expect([...kinds]).toEqual(expect.arrayContaining([...expected, 'events', 'tasks', 'debug', 'custom']));
    expect(kinds).not.toContain('other');
    expect(kinds).not.toContain('malformed');
    expect(events.find(({ event }) => event === 'custom')?.data).toEqual({ progress: 'planned' });
    const below = events.find(({ event, namespace }) => event === 'updates' && namespace.length === 1);
    expect(below?.namespace[0]).toMatch(/^weather:[0-9a-f-]{36}$/);
    expect(Object.keys(below?.data as object)).toEqual(['look']);
  });

  it('stops for an answer and goes on with it', async () => {
    const { thread_id } = await server.threads.create();

    const asked = await server.runs.wait(thread_id, ask('approve'));
    expect(asked).toMatchObject({ __interrupt__: [{ value: { question: 'May I?' } }] });
    expect(await server.threads.get(thread_id)).toMatchObject({ status: 'interrupted' });

    const events = await all(
      await server.runs.stream(thread_id, { assistant_id: 'agent', command: { resume: 'yes' } }),
    );
    const last = events.at(-1) as { data: { messages: { content: string }[] } };
    expect(last.data.messages.at(-1)?.content).toBe('You said yes.');
  });

  it('gives the error of a run as an event, and throws it at the end', async () => {
    const { thread_id } = await server.threads.create();
    const stream = await server.runs.stream(thread_id, ask('fail'));
    const seen: AgentEvent[] = [];

    const reading = (async () => {
      for await (const event of stream) seen.push(event);
    })();

    await expect(reading).rejects.toMatchObject({
      code: 'RUNSPAN_RUN_FAILED',
      runId: stream.runId,
      threadId: thread_id,
      error: 'RangeError',
      detail: 'no such city',
    });
    expect(seen.at(-1)).toMatchObject({ event: 'error', data: { error: 'RangeError', message: 'no such city' } });
  });

  it('ends a run whose reader leaves, where it was asked to', async () => {
    const { thread_id } = await server.threads.create();
    const stream = await server.runs.stream(thread_id, { ...ask('wait'), on_disconnect: 'cancel' });

    for await (const event of stream) if (event.event === 'values') break;

    // The server looks after half a second at the latest.
    await expect
      .poll(async () => (await server.runs.get(thread_id, String(stream.runId))).status, { timeout: 10_000 })
      .toBe('interrupted');
  });

  it('goes on after a cut, without a gap or a repetition', async () => {
    const { thread_id } = await server.threads.create();
    const proxy = await cutBehind(url, 'id: 5\n\n');
    await using cut = new AgentServer({ url: proxy.url });
    const run = { ...ask('weather?'), stream_resumable: true, stream_subgraphs: true } as const;

    const events = await all(await cut.runs.stream(thread_id, run));

    expect(events.map((event) => event.id)).toEqual(events.map((_, at) => String(at)));
    expect(events.length).toBeGreaterThan(8);
    const runs = `/threads/${thread_id}/runs`;
    const runId = (events[0] as { data: { run_id: string } }).data.run_id;
    expect(proxy.requests).toEqual([`POST ${runs}/stream`, `GET ${runs}/${runId}/stream`]);
    expect(await server.runs.list(thread_id).toArray(10)).toHaveLength(1);
  });
});
