// The option `stream`: a result that contains the stream.
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { type TraceableOptions, traceable } from '#src/index.ts';
import { outlineOf } from '#src/testing.ts';
import { logLines } from '../support/log-lines.ts';
import { readAll } from '../support/read-all.ts';
import { record } from './recorder.ts';

async function* letters() {
  yield 'a';
  yield 'b';
}

function webStream(): ReadableStream<string> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of ['a', 'b']) controller.enqueue(chunk);
      controller.close();
    },
  });
}

const all = (chunks: unknown) => readAll(chunks as AsyncIterable<unknown>);

describe('the run of a result with a stream', () => {
  test.each<[string, () => AsyncIterable<string> | Iterable<string>]>([
    ['an async generator', letters],
    ['a generator', () => ['a', 'b'].values()],
    ['a web stream', webStream],
    ['a Node stream', () => Readable.from(['a', 'b'])],
  ])('ends when %s ends, and has its chunks', async (_, makeStream) => {
    const recorder = record();
    const options = { stream: (result: { stream: unknown }) => result.stream };
    const made = { stream: makeStream(), meta: { id: 7 } };
    for (const ask of [
      traceable(() => made, options),
      traceable(async () => ({ ...made, stream: makeStream() }), options),
    ]) {
      recorder.clear();
      const result = await ask();
      expect(result.meta).toBe(made.meta);
      expect(recorder.runs[0]).not.toHaveProperty('end_time');
      expect(await all(result.stream)).toEqual(['a', 'b']);
      expect(recorder.runs).toMatchObject([
        { end_time: expect.any(String), outputs: { outputs: ['a', 'b'] }, events: [{ name: 'new_token' }] },
      ]);
    }
  });

  test('has the value of `aggregate`, and its steps are in the context of the run', async () => {
    const recorder = record();
    const inner = traceable((letter: string) => letter, { name: 'inner' });
    const ask = traceable(
      async () => ({
        answer: (async function* () {
          yield inner('a');
          yield inner('b');
        })(),
      }),
      { name: 'ask', stream: ({ answer }) => answer, aggregate: (chunks) => ({ text: chunks.join('') }) },
    );
    await all((await ask()).answer);
    expect(outlineOf(recorder)).toBe('ask (chain)\n  inner (chain)\n  inner (chain)');
    expect(recorder.run('ask').outputs).toEqual({ text: 'ab' });
  });

  test('is cancelled if the consumer stops', async () => {
    const recorder = record();
    const { stream } = await traceable(async () => ({ stream: letters() }), { stream: (result) => result.stream })();
    for await (const _ of stream) break;
    expect(recorder.runs).toMatchObject([{ outputs: { outputs: ['a'] }, extra: { runspan_end_reason: 'cancelled' } }]);
  });
});

const cases: [string, TraceableOptions<[], { text: string }>, string[]][] = [
  ['returns undefined', { stream: () => undefined }, []],
  ['returns a value that is no stream', { stream: ({ text }) => text }, []],
  [
    'throws',
    {
      stream: () => {
        throw new Error('no stream');
      },
    },
    ['warn: stream failed, the application is not affected: no stream'],
  ],
];
test.each(cases)('the result is recorded as usual if the callback %s', async (_, options, expected) => {
  const recorder = record();
  const lines = logLines();
  const [plain, promised] = [
    traceable(() => ({ text: 'a' }), options),
    traceable(async () => ({ text: 'a' }), options),
  ];
  expect([plain(), await promised()]).toEqual([{ text: 'a' }, { text: 'a' }]);
  expect(lines).toEqual(expected);
  const run = { outputs: { text: 'a' }, end_time: expect.any(String) };
  expect(recorder.runs).toMatchObject([run, run]);
});

test('a rejected promise fails the run, and the callback is not called', async () => {
  const recorder = record();
  const stream = (): never => {
    throw new Error('called');
  };
  const lines = logLines();
  const ask = traceable(() => Promise.reject(new TypeError('no')), { stream });
  await expect(ask()).rejects.toThrow('no');
  expect(lines).toEqual([]);
  expect(recorder.runs[0]?.error).toMatch(/^TypeError: no/);
});
