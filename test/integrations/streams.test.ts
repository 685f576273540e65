// How the run of a streamed answer ends, for each way to consume a stream and for each service.
import { describe, expect, test } from 'vitest';
import { followStream } from '#src/integrations/answer-stream.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import type { RunRecord } from '#src/run/record.ts';
import type { AnswerReader } from '#src/services/answer.ts';
import { record } from '../instrument/recorder.ts';
import { LIMITS, makeRun } from '../run/memory-sink.ts';
import type { LocalModel } from '../support/local-model/server.js';
import { logLines } from '../support/log-lines.ts';
import { bareClient, chunksOf, localModel } from './local-openai.ts';
import { anthropic, type Helper, openai, type Sdk, type Stream, sdks } from './sdks.ts';

interface Service {
  stream(model: LocalModel, name: string, options?: { signal: AbortSignal }): PromiseLike<Stream>;
  textOf(outputs: RunRecord['outputs']): unknown;
  /** Whether a chunk is the last one that the model sends before it hangs or fails. */
  isLast(chunk: object): boolean;
  /** The recorded text after that chunk. */
  readonly partial: string | undefined;
}

const contains = (text: string) => (chunk: object) => JSON.stringify(chunk).includes(text);
const streamOf = (sdk: Sdk): Service['stream'] => {
  return (model, name, options) => sdk.stream(sdk.wrap(sdk.make(model)), { model: name }, options);
};

const services: Readonly<Record<string, Service>> = {
  'OpenAI chat completions': {
    stream: streamOf(openai),
    textOf: (outputs) => (outputs as { choices: { message: { content: string } }[] }).choices[0]?.message.content,
    isLast: contains('"said: "'),
    partial: 'You said: ',
  },
  'OpenAI responses': {
    stream: (model, name, options) => {
      const body = { model: name, input: 'What is tea?', stream: true as const };
      return wrapOpenAI(bareClient(model)).responses.create(body, options) as unknown as PromiseLike<Stream>;
    },
    textOf: (outputs) => (outputs as { output: { content: { text: string }[] }[] }).output[0]?.content[0]?.text,
    isLast: contains('response.output_item.added'),
    partial: undefined,
  },
  'Anthropic messages': {
    stream: streamOf(anthropic),
    textOf: (outputs) => (outputs as { content: { text: string }[] }).content[0]?.text,
    isLast: contains('"You"'),
    partial: 'You',
  },
};

/** Reads until the model hangs, and then calls `leave`. */
async function readUntilHang(stream: Stream, { isLast }: Service, leave: () => void): Promise<void> {
  for await (const chunk of stream) if (isLast(chunk)) leave();
}

type Consume = (stream: Stream, service: Service, abort: () => void) => Promise<unknown>;

const leaving: Readonly<Record<string, Consume>> = {
  break: async (stream, { isLast }) => {
    for await (const chunk of stream) if (isLast(chunk)) break;
  },
  'an error in the loop': async (stream, service) => {
    const read = readUntilHang(stream, service, () => expect.unreachable('left'));
    await expect(read).rejects.toThrow('left');
  },
  'its controller, in the loop': (stream, service) => readUntilHang(stream, service, () => stream.controller.abort()),
  'its controller, while a chunk is pending': (stream, service) =>
    readUntilHang(stream, service, () => setImmediate(() => stream.controller.abort())),
  'its controller, while nobody reads': async (stream, { isLast }) => {
    const iterator = stream[Symbol.asyncIterator]();
    for (let step = await iterator.next(); !isLast(step.value); ) step = await iterator.next();
    stream.controller.abort();
  },
  'the signal of the call': (stream, service, abort) => readUntilHang(stream, service, () => setImmediate(abort)),
  'cancelling its readable stream': async (stream, { isLast }) => {
    const reader = stream.toReadableStream().getReader();
    const text = new TextDecoder();
    for (let all = ''; !isLast({ all: JSON.parse(all.split('\n').at(-2) ?? 'null') }); ) {
      all += text.decode((await reader.read()).value);
    }
    await reader.cancel();
  },
};

const reading: Readonly<Record<string, (stream: Stream) => Promise<unknown>>> = {
  'a loop': chunksOf,
  'both branches of tee()': async (stream) => Promise.all(stream.tee().map(chunksOf)),
  'its readable stream': (stream) => new Response(stream.toReadableStream()).text(),
  'a loop after an iterator that was closed unread': async (stream) => {
    await stream[Symbol.asyncIterator]().return?.();
    await chunksOf(stream);
  },
  'a loop beside a second reader, which the SDK refuses': async (stream) => {
    let refused = 0;
    for await (const _ of stream) if (refused++ === 0) await expect(chunksOf(stream)).rejects.toThrow();
  },
  'a loop that changes the chunks': async (stream) => {
    for await (const chunk of stream) {
      for (const part of Object.values(chunk)) if (typeof part === 'object') Object.assign(part ?? {}, { text: 'X' });
    }
  },
};

describe.each(Object.entries(services))('a stream of %s', (_, service) => {
  async function open(name: string, options?: { signal: AbortSignal }) {
    const model = await localModel();
    const recorder = record();
    const stream = await service.stream(model, name, options);
    const recorded = (): RunRecord => {
      const [run, ...others] = recorder.runs;
      expect(others).toEqual([]);
      expect(run).toHaveProperty('end_time');
      return run as RunRecord;
    };
    return { model, stream, recorded };
  }

  test.each(Object.entries(reading))('that is read by %s has the whole answer', async (_, read) => {
    const { stream, recorded } = await open('small');
    await read(stream);
    const run = recorded();
    expect(service.textOf(run.outputs)).toBe('You said: What is tea?');
    expect(run.events).toMatchObject([{ name: 'new_token' }]);
    expect(run).not.toHaveProperty('error');
    expect(run.extra).not.toHaveProperty('runspan_end_reason');
  });

  test.each(Object.entries(leaving))('that is left by %s is cancelled, with the text so far', async (_, leave) => {
    const controller = new AbortController();
    const { stream, recorded, model } = await open('hang-mid-stream', { signal: controller.signal });
    await leave(stream, service, () => controller.abort());
    const run = recorded();
    expect(service.textOf(run.outputs)).toBe(service.partial);
    expect(run.extra).toMatchObject({ runspan_end_reason: 'cancelled' });
    expect(run).not.toHaveProperty('error');
    expect(await model.requests[0]?.closed).toBe('aborted');
  });

  test.each([
    ['fail-mid-stream', /overloaded/],
    ['malformed', /^SyntaxError: /],
    ['drop-mid-stream', /^TypeError: terminated/],
  ])('of the model %s has the error, and the text so far', async (name, error) => {
    const { stream, recorded } = await open(name);
    await expect(chunksOf(stream)).rejects.toThrow();
    const run = recorded();
    expect(run.error).toMatch(error);
    expect(service.textOf(run.outputs)).toBe(service.partial);
    expect(run.extra).not.toHaveProperty('runspan_end_reason');
  });
});

test.each(sdks)(
  'a stream of a helper of %s that is aborted is cancelled',
  async (_, { make, wrap, helper, textEvent }) => {
    const recorder = record();
    const stream: Helper = helper(wrap(make(await localModel())), { model: 'hang-mid-stream' });
    stream.once(textEvent, () => stream.abort());
    await expect(stream.done()).rejects.toThrow('Request was aborted.');
    expect(recorder.runs).toMatchObject([{ end_time: expect.any(String), extra: { runspan_end_reason: 'cancelled' } }]);
  },
);

const joining: AnswerReader = {
  read: (text) => ({ outputs: { text }, model: String(text) }),
  fold: () => {
    let text = '';
    return {
      add: (chunk, isFull) => {
        if (chunk === 'unreadable') throw new Error('unreadable');
        if (!isFull) text += chunk;
        return String(chunk).length;
      },
      result: () => text,
    };
  },
};

function makeStream(chunks: readonly unknown[]) {
  return {
    controller: new AbortController(),
    async *iterator() {
      yield* chunks;
    },
    [Symbol.asyncIterator]() {
      return this.iterator();
    },
  };
}

describe('a followed stream', () => {
  test.each([
    [4, 'abcd', 1],
    [5, 'abcde', undefined],
    [6, 'abcde', undefined],
  ])('keeps at most the text of one payload, here %i characters', async (bytes, text, dropped) => {
    const { run, record } = makeRun({}, { payload: { ...LIMITS, bytes } });
    const stream = makeStream(['a', 'b', 'c', 'd', 'e']);
    expect(followStream(stream, run, joining)).toBe(true);
    expect(await chunksOf(stream)).toHaveLength(5);
    expect(record()?.events).toMatchObject([{ name: 'new_token' }]);
    expect(record()?.extra?.metadata).toEqual({ response_model: text, dropped_chunks: dropped });
  });

  test('continues after a chunk that cannot be read', async () => {
    const lines = logLines();
    const { run, record } = makeRun();
    const stream = makeStream(['', 'a', 'unreadable', 'b']);
    followStream(stream, run, joining);
    await chunksOf(stream);
    expect(record()?.outputs).toEqual({ text: 'ab' });
    expect(lines).toEqual(['warn: recording a stream failed, the application is not affected: unreadable']);
  });

  test('is recorded by the iterator that is read first', async () => {
    const { run, record } = makeRun();
    const stream = makeStream(['a', 'b']);
    followStream(stream, run, joining);
    const [first, second] = [stream.iterator(), stream.iterator()];
    await second.next();
    await first.next();
    await first.next();
    expect(record()).not.toHaveProperty('end_time');
    await second.next();
    await second.next();
    expect(record()).toMatchObject({ outputs: { text: 'ab' }, end_time: expect.any(String) });
  });

  test.each([
    [undefined],
    ['text'],
    [{}],
    [{ iterator: () => {} }],
    [{ iterator: () => {}, controller: {} }],
    [Object.freeze(makeStream([]))],
    [Object.assign(makeStream([]), { controller: undefined, [Symbol.asyncIterator]: undefined })],
  ])('is not any other value: %o', (value) => {
    const { run, record } = makeRun();
    expect(followStream(value, run, joining)).toBe(false);
    expect(record()).not.toHaveProperty('end_time');
  });
});
