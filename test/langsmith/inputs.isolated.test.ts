// Arguments that are read while a function runs. A program in this folder compares them with those that LangSmith records.
import { Readable } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { configure, currentRun } from '#src/index.ts';
import { traceable, wrapSDK } from '#src/langsmith.ts';
import { createReceiver } from '#src/receiver.ts';
import { record } from '../instrument/recorder.ts';
import '../support/tracing-off.ts';

async function* count(limit = 3): AsyncGenerator<number> {
  for (let n = 1; n <= limit; n++) yield n;
}

const readAll = async (input: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of input);
};

test('each function records what was read of an argument until its run has ended, and gets the same object', async () => {
  const recorder = record();
  const given = count();
  const inner = traceable(async (input: typeof given) => void (await input.next()), { name: 'inner' });
  const outer = traceable(
    async (input: typeof given) => {
      await inner(input);
      expect([input === given, (await input.next()).value]).toEqual([true, 2]);
    },
    { name: 'outer' },
  );
  await outer(given);
  expect((await given.next()).value).toBe(3);
  expect(recorder.run('inner').inputs).toEqual({ input: [1] });
  expect(recorder.run('outer').inputs).toEqual({ input: [1, 2] });
});

const MORE = '[Truncated: 1 more items]';

test.each<[string, object, (input: never) => unknown, object]>([
  ['an async iterable', { [Symbol.asyncIterator]: () => count(2) }, readAll, { input: [1, 2] }],
  ['a Node stream in a property', { of: Readable.from(['a']), n: 1 }, ({ of }) => readAll(of), { of: ['a'], n: 1 }],
  ['an empty web stream', new Blob([]).stream(), readAll, { input: [] }],
  [
    'a web stream that is piped',
    ReadableStream.from([1, 2]),
    (input: ReadableStream) => input.pipeThrough(new TransformStream()).pipeTo(new WritableStream()),
    { input: [1, 2] },
  ],
  ['10,000 chunks and one', count(10_001), readAll, { input: expect.objectContaining({ 9999: 10_000, 10000: MORE }) }],
  ['secrets', Readable.from([{ password: 'hunter2' }]), readAll, { input: [{ password: '[Redacted]' }] }],
  ['what the application sets', count(), () => currentRun()?.set({ inputs: { own: 1 } }), { own: 1 }],
])('%s', async (_, input, read, inputs) => {
  const recorder = record();
  await wrapSDK({ read }).read(input as never);
  expect(recorder.runs[0]?.inputs).toEqual(inputs);
});

test('a promise is observed only if its rejection cannot be hidden, and a lazy one is not started', async () => {
  const recorder = record();
  const rejections: unknown[] = [];
  const note = (reason: unknown): void => void rejections.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  let reject: (reason: unknown) => void = () => {};
  const pending = new Promise((_, fail) => {
    reject = fail;
  });
  const start = vi.fn(async () => 'row');
  class Query {
    // biome-ignore lint/suspicious/noThenProperty: a query that starts when it is awaited
    then = (...reactions: Parameters<Promise<string>['then']>) => start().then(...reactions);
  }
  const call = traceable(async (...[first]: unknown[]) => await first);
  await call(new Query(), new Query(), pending, Promise.reject(1));
  reject(2);
  await new Promise(setImmediate);
  expect(recorder.runs[0]?.inputs).toEqual({ args: ['row', expect.any(Object), '[Promise]', '[Promise]'] });
  expect(start).toHaveBeenCalledTimes(1);
  expect(rejections).toEqual([1, 2]);
});

test('the end of a run replaces the inputs of a start that is already sent', async () => {
  const receiver = await createReceiver();
  const exporter = configure({ endpoint: receiver.url, limits: { startDelayMs: 1, lingerMs: 1 } });
  onTestFinished(() => receiver.close());
  const inputs = async () => (await receiver.runs({})).map((run) => run.inputs);
  await traceable(async (input: AsyncIterable<number>) => {
    await expect.poll(inputs).toEqual([{ input: '[AsyncGenerator]' }]);
    await readAll(input);
  })(count());
  await exporter.close();
  expect(await inputs()).toEqual([{ input: [1, 2, 3] }]);
});
