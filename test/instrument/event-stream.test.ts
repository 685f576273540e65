import type Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { allOf, ask, localModel, makeClient } from '../integrations/anthropic-client.ts';
import { record } from './recorder.ts';

const model = localModel();

type MessageStream = ReturnType<Anthropic['messages']['stream']>;

/** A traced function that hands out the stream of a helper, and the one run that it becomes. */
function streaming(question = ask('tea')) {
  const recorder = record();
  const client = makeClient(model());
  const answer = traceable(() => client.messages.stream(question), { name: 'answer' });
  const answerLater = traceable(async () => client.messages.stream(question), { name: 'answer' });
  return { answer, answerLater, run: () => recorder.runs[0] };
}

function eventTypes(outputs: unknown): unknown[] {
  return (outputs as { outputs: { type: string }[] }).outputs.map(({ type }) => type);
}

const ALL_OF_AN_ANSWER = ['message_start', 'content_block_start', 'content_block_delta', 'message_stop'];

describe('the stream of a helper that a function returns', () => {
  test.each<[string, (stream: MessageStream) => Promise<unknown>]>([
    ['is waited for by finalMessage', (stream) => stream.finalMessage()],
    ['is waited for by done', (stream) => stream.done()],
    ['is listened to', (stream) => new Promise((resolve) => stream.on('end', () => resolve(undefined)))],
    ['is iterated', (stream) => allOf(stream)],
    ['is read by its readable stream', (stream) => new Response(stream.toReadableStream()).text()],
  ])('ends its run with everything that came when it %s', async (_, read) => {
    const { answer, run } = streaming();
    await read(answer());
    expect(eventTypes(run()?.outputs)).toEqual(expect.arrayContaining(ALL_OF_AN_ANSWER));
    expect(run()).toMatchObject({ end_time: expect.any(String), events: [{ name: 'new_token' }] });
    expect(run()?.error).toBeUndefined();
  });

  test('fails its run with the error that the caller gets', async () => {
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
    expect(run()).toMatchObject({ end_time: expect.any(String), extra: { metadata: { end_reason: 'cancelled' } } });
    expect(run()?.error).toBeUndefined();
  });

  test('ends its run at once when it has come to its end before', async () => {
    const recorder = record();
    const stream = makeClient(model()).messages.stream(ask('tea'));
    await stream.done();
    traceable(() => stream, { name: 'late' })();
    expect(recorder.runs).toEqual([expect.objectContaining({ name: 'late', end_time: expect.any(String) })]);
  });

  test('ends the runs of all functions that hand it on', async () => {
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
