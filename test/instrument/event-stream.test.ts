import type Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { chunksOf, sharedModel } from '../integrations/local-openai.ts';
import { ask, makeClient } from '../integrations/sdks.ts';
import { record } from './recorder.ts';

const model = sharedModel();

type MessageStream = ReturnType<Anthropic['messages']['stream']>;

/** Returns a traced function that returns the stream of an SDK helper, and its run. */
function streaming(question = ask('tea')) {
  const recorder = record();
  const client = makeClient(model());
  const answer = traceable(() => client.messages.stream(question), { name: 'answer' });
  const answerLater = traceable(async () => client.messages.stream(question), { name: 'answer' });
  return { answer, answerLater, run: () => recorder.runs[0] };
}

const ANSWER_EVENTS = ['message_start', 'content_block_start', 'content_block_delta', 'message_stop'];

describe('a returned stream of an SDK helper', () => {
  test.each<[string, (stream: MessageStream) => Promise<unknown>]>([
    ['finalMessage()', (stream) => stream.finalMessage()],
    ['done()', (stream) => stream.done()],
    ['an event', (stream) => new Promise((resolve) => stream.on('end', () => resolve(undefined)))],
    ['iteration', (stream) => chunksOf(stream)],
    ['its readable stream', (stream) => new Response(stream.toReadableStream()).text()],
  ])('ends its run with all events if it is consumed by %s', async (_, read) => {
    const { answer, run } = streaming();
    await read(answer());
    const events = run()?.outputs?.outputs as { type: string }[];
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(ANSWER_EVENTS));
    expect(run()).toMatchObject({ end_time: expect.any(String), events: [{ name: 'new_token' }] });
    expect(run()?.error).toBeUndefined();
  });

  test('fails its run with the error that the caller receives', async () => {
    const { answer, run } = streaming(ask('tea', { model: 'fail-400' }));
    const error = await answer()
      .done()
      .catch((thrown: Error) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(run()?.error).toContain((error as Error).message);
  });

  test('cancels its run when it is aborted', async () => {
    const { answer, run } = streaming(ask('tea', { model: 'hang-mid-stream' }));
    const stream = answer();
    stream.on('text', () => stream.abort());
    await expect(stream.done()).rejects.toThrow('aborted');
    expect(run()).toMatchObject({ end_time: expect.any(String), extra: { runspan_end_reason: 'cancelled' } });
    expect(run()?.error).toBeUndefined();
  });

  test('ends its run immediately if it has already ended', async () => {
    const recorder = record();
    const stream = makeClient(model()).messages.stream(ask('tea'));
    await stream.done();
    traceable(() => stream, { name: 'late' })();
    expect(recorder.runs).toEqual([expect.objectContaining({ name: 'late', end_time: expect.any(String) })]);
  });

  test('ends the runs of all functions that return it', async () => {
    const recorder = record();
    const client = makeClient(model());
    const inner = traceable(() => client.messages.stream(ask('tea')), { name: 'inner' });
    await traceable(() => inner(), { name: 'outer' })().finalText();
    expect(recorder.runs.map(({ name, end_time }) => [name, typeof end_time])).toEqual([
      ['outer', 'string'],
      ['inner', 'string'],
    ]);
  });
});
