// Programs that `replay` runs in the process of the test.
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { replay } from '#src/replay/run-replay.ts';
import { recordRuns } from '#src/testing/record-runs.ts';
import { outlineOf, snapshotOf } from '#src/testing/snapshot.ts';
import { lookUp } from '../integrations/local-openai.ts';
import { gate } from '../support/gate.ts';
import { startLocalModel } from '../support/local-model/server.js';
import { fixtureFile } from './recorded-fixture.ts';

function agentAt(baseURL: string, tool: () => Promise<string>) {
  const client = wrapOpenAI(new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0 }));
  const look = traceable(tool, { name: 'look_up', runType: 'tool' });
  return traceable(
    async (question: string) => {
      const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }];
      for (;;) {
        const { choices } = await client.chat.completions.create({ model: 'small', messages, tools: [lookUp] });
        const message = choices[0]?.message;
        if (message?.tool_calls === undefined) return message?.content;
        messages.push(message);
        for (const { id } of message.tool_calls)
          messages.push({ role: 'tool', tool_call_id: id, content: await look() });
      }
    },
    { name: 'agent' },
  );
}

/** Records an agent, and writes its fixture. The service of its model has ended. */
async function recordedAgent(tool: () => Promise<string>) {
  const model = await startLocalModel();
  const recorder = recordRuns();
  const baseURL = `${model.url}/v1`;
  await agentAt(baseURL, tool)('What is tea?').catch(() => {});
  recorder.stop();
  await model.close();
  const file = fixtureFile(recorder.runs);
  return { runs: recorder.runs, file, run: (changed: () => Promise<string>) => agentAt(baseURL, changed) };
}

const plant = async () => 'a plant';
const fails = async (): Promise<string> => {
  throw new RangeError('no index');
};

test('a program of this process has the recorded trace', async () => {
  const { runs, file, run } = await recordedAgent(plant);
  const replayed = await replay(file, { run: () => run(plant)('What is tea?') });
  expect(replayed).toMatchObject({ notes: [], wasStopped: false });
  const steady = (recorded: Parameters<typeof snapshotOf>[0]) =>
    JSON.parse(JSON.stringify(snapshotOf(recorded), (key, value) => (key === 'request_id' ? undefined : value)));
  expect(steady(replayed)).toEqual(steady({ runs }));
});

test('another result of a tool is a difference, which the mode `failed` accepts', async () => {
  const { file, run } = await recordedAgent(plant);
  const other = () => run(async () => 'a leaf')('What is tea?');
  const line = 'messages[2].content: recorded "a plant", got "a leaf"';
  await expect(replay(file, { run: other })).rejects.toMatchObject({
    code: 'RUNSPAN_REPLAY_MISMATCH',
    message: expect.stringContaining(line),
  });
  const { notes } = await replay(file, { run: other, mode: 'failed' });
  expect(notes).toEqual([line]);
});

test('another question is a difference in the mode `strict`', async () => {
  const { file, run } = await recordedAgent(plant);
  const other = () => run(plant)('What is coffee?');
  const error = {
    message: expect.stringContaining('messages[0].content: recorded "What is tea?", got "What is coffee?"'),
  };
  await expect(replay(file, { run: other })).rejects.toMatchObject(error);
});

test('a program passes the failure of a tool that is fixed', async () => {
  const { runs, file, run } = await recordedAgent(fails);
  expect(outlineOf({ runs })).toBe(`\
agent (chain): RangeError: no index
  openai.chat.completions (llm)
  look_up (tool): RangeError: no index`);
  const passed = await replay(file, { run: () => run(plant)('What is tea?') });
  expect(passed).toMatchObject({ notes: [], wasStopped: true });
  expect(outlineOf(passed)).toBe(`\
agent (chain): open
  openai.chat.completions (llm)
  look_up (tool)
  openai.chat.completions (llm): open`);
  await expect(replay(file, { run: () => run(fails)('What is tea?') })).rejects.toThrow(new RangeError('no index'));
});

test('after a replay, only requests of others are sent', async () => {
  const { file, run } = await recordedAgent(fails);
  const model = await startLocalModel();
  onTestFinished(() => model.close());
  const later = gate();
  const ask = (content: string) =>
    fetch(`${model.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content }] }),
    });
  const { wasStopped } = await replay(file, {
    run: () => Promise.all([run(plant)('What is tea?'), later.then(() => ask('of the program'))]),
  });
  expect(wasStopped).toBe(true);
  later.open();
  await ask('of the test');
  expect(model.requests.map(({ body }) => body.messages)).toEqual([[{ role: 'user', content: 'of the test' }]]);
  // This is not recorded either.
  const recorder = recordRuns();
  await ask('of another test');
  recorder.stop();
  expect(recorder.runs).toEqual([]);
});

test('two programs of this process cannot be replayed at once', async () => {
  const { file, run } = await recordedAgent(plant);
  const first = replay(file, { run: () => run(plant)('What is tea?') });
  await expect(replay(file, { run: () => {} })).rejects.toMatchObject({ code: 'RUNSPAN_INVALID_OPTION' });
  expect(await first).toMatchObject({ notes: [] });
});

test('a program whose client has kept another `fetch` is a mismatch in both modes', async () => {
  const { file } = await recordedAgent(plant);
  for (const mode of ['strict', 'failed'] as const) {
    const replayed = replay(file, { mode, run: async () => 'an answer' });
    await expect(replayed).rejects.toThrow('no model call was made with the `fetch` of the replay');
  }
});

test('an error of the program is thrown, unless its calls differ', async () => {
  const { file, run } = await recordedAgent(plant);
  const checks = async () => {
    await run(plant)('What is tea?');
    throw new RangeError('another answer was expected');
  };
  await expect(replay(file, { run: checks })).rejects.toThrow(RangeError);
});
