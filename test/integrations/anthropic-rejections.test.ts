// A rejection that nobody handles stays one, once, and ends the program in the same way.
import type Anthropic from '@anthropic-ai/sdk';
import { expect, test } from 'vitest';
import { wrapAnthropic } from '../../src/integrations/anthropic/client.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { record } from '../instrument/recorder.ts';
import { allOf, ask, localModel, makeClient } from './anthropic-client.ts';
import { runAnthropicProgram } from './anthropic-program.ts';

const model = localModel();

const failing = ask('a', { model: 'fail-400' });

const programs: Record<string, (client: Anthropic) => unknown> = {
  'a promise': ({ messages }) => messages.create(failing),
  'then alone': ({ messages }) => messages.create(failing).then(() => {}),
  finally: ({ messages }) => messages.create(failing).finally(() => {}),
  withResponse: ({ messages }) => messages.create(failing).withResponse(),
  asResponse: ({ messages }) => messages.create(failing).asResponse(),
  'asResponse and then': ({ messages }) => {
    const promise = messages.create(failing);
    promise.then(() => {});
    promise.asResponse();
  },
  parse: ({ messages }) => messages.parse(failing),
  'a stream': async ({ messages }) =>
    allOf(await messages.create({ ...ask('a', { model: 'fail-mid-stream' }), stream: true })),
  'messages.stream()': ({ messages }) => messages.stream(failing).on('text', () => {}),
  'messages.stream(), aborted': ({ messages }) => {
    const stream = messages.stream(ask('a', { model: 'hang-mid-stream' }));
    stream.on('text', () => stream.abort());
  },
};

test.each(Object.entries(programs))('of %s', async (_, program) => {
  record();
  const bare = await rejectionsOf(program, makeClient(model()));
  const traced = await rejectionsOf(program, wrapAnthropic(makeClient(model())));
  expect(traced).toEqual(bare);
});

async function rejectionsOf(program: (client: Anthropic) => unknown, client: Anthropic) {
  const unhandled = unhandledRejections();
  void program(client);
  let reasons = await unhandled();
  while (reasons.length === 0) reasons = await unhandled();
  return (await unhandled()).map((reason) => [(reason as Error).constructor.name, String(reason)]);
}

test.each([
  ['is dropped', `client.messages.create(ask('fail-400'));`],
  ['is awaited', `await client.messages.create(ask('fail-400'));`],
  ['no listener hears', `client.messages.stream(ask('fail-400')).on('text', () => {});`],
])('that %s ends the program', async (_, program) => {
  const [bare, traced] = await Promise.all([
    runAnthropicProgram(program, model()),
    runAnthropicProgram(program, model(), { TRACED: 'yes' }),
  ]);
  expect(traced).toEqual(bare);
  expect(bare.code).toBe(1);
  expect(bare.stderr).toContain('BadRequestError: 400');
});
