// What an application drops ends its run when it has been collected, which takes a process of its own to see.
import { expect, test } from 'vitest';
import { localModel } from './anthropic-client.ts';
import { runAnthropicProgram } from './anthropic-program.ts';

const model = localModel();

// Collected in one of many turns of the event loop; a program that never gets there is ended from outside.
const COLLECT = `
  while (recorder.runs.some((run) => run.end_time === undefined)) {
    gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const [{ extra, outputs, error }] = recorder.runs;
  console.log(JSON.stringify([extra.metadata.end_reason, outputs.content ?? null, error ?? null]));
  process.exit();`;

test.each([
  ['a stream that is never read', `await client.messages.create({ ...ask('small'), stream: true });`, null],
  [
    'a stream that is not read to its end',
    `await (async () => {
      const stream = await client.messages.create({ ...ask('small'), stream: true });
      const iterator = stream[Symbol.asyncIterator]();
      for (let step = 0; step < 3; step++) await iterator.next();
    })();`,
    [{ type: 'text', text: 'You' }],
  ],
  ['a promise that nobody waits for', `client.messages.create(ask('small'));`, null],
])('%s ends its run as interrupted', async (_, program, content) => {
  const { stdout, stderr, code } = await runAnthropicProgram(program + COLLECT, model(), { TRACED: 'yes' });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual(['interrupted', content, 'Interrupted: the result was collected before its end']);
});

test('a stream in use is not taken for dropped, though nobody holds its object', async () => {
  const program = `
    const iterator = await (async () => {
      const stream = await client.messages.create({ ...ask('small'), stream: true });
      return stream[Symbol.asyncIterator]();
    })();
    while (!(await iterator.next()).done) {
      for (let turn = 0; turn < 5; turn++) { gc(); await new Promise((resolve) => setImmediate(resolve)); }
    }
    const [{ extra, outputs }] = recorder.runs;
    console.log(JSON.stringify([extra.metadata.end_reason ?? null, outputs.content]));`;
  const { stdout } = await runAnthropicProgram(program, model(), { TRACED: 'yes' });
  expect(JSON.parse(stdout)).toEqual([null, [{ type: 'text', text: 'You said: a' }]]);
});
