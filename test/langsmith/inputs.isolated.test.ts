// Arguments that are read while a function runs. `programs/streams.ts` compares more of them with LangSmith.
import { Readable } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { configure, currentRun } from '#src/index.ts';
import { traceable } from '#src/langsmith.ts';
import { unhandledRejections } from '../base/rejections.ts';
import { record } from '../instrument/recorder.ts';
import { startReceiver } from '../support/receiver.ts';
import '../support/tracing-off.ts';

async function* count(limit = 3): AsyncGenerator<number> {
  for (let n = 1; n <= limit; n++) yield n;
}

const readAll = (input: AsyncIterable<unknown>): Promise<void> => Readable.from(input).forEach(() => {});

test('each function records what was read of an argument until its run has ended, and gets the same object', async () => {
  const recorder = record();
  const given = count();
  const inner = traceable(async (input: typeof given) => void (await input.next()), { name: 'inner' });
  const read = async (input: typeof given) => [await inner(input), await input.next(), input === given];
  const shown: unknown[] = [];
  const on_end = ({ inputs }: { inputs: unknown }): void => void shown.push(inputs);
  expect(await traceable(read, { on_end })(given)).toEqual([undefined, { value: 2, done: false }, true]);
  expect(await given.next()).toEqual({ value: 3, done: false });
  expect(shown).toEqual([{ input: [1, 2] }]);
  expect(recorder.run('inner').inputs).toEqual({ input: [1] });
  expect(recorder.run('read').inputs).toEqual({ input: [1, 2] });
});

const piped = (input: ReadableStream) => input.pipeThrough(new TextDecoderStream()).pipeTo(new WritableStream());
const limited = expect.objectContaining({ 9999: 10_000, 10000: '[Truncated: 1 more items]' });

test.each<[string, object, (input: never) => unknown, object]>([
  ['an async iterable', { [Symbol.asyncIterator]: () => count(2) }, readAll, { input: [1, 2] }],
  ['a Node stream in a property', { of: Readable.from(['a']), n: 1 }, ({ of }) => readAll(of), { of: ['a'], n: 1 }],
  ['an empty web stream', new Blob([]).stream(), (input: ReadableStream) => new Response(input).text(), { input: [] }],
  ['a web stream before it is decoded', new Blob(['a']).stream(), piped, { input: [expect.any(Object)] }],
  ['10,000 chunks and the number of the others', count(10_001), readAll, { input: limited }],
  ['the chunks after redaction', Readable.from([{ password: 'x' }]), readAll, { input: [{ password: '[Redacted]' }] }],
  ['what the application sets', count(), () => currentRun()?.set({ inputs: { own: 1 } }), { own: 1 }],
])('%s is recorded', async (_, input, read, inputs) => {
  const recorder = record();
  await traceable(read as (input: unknown) => unknown)(input);
  expect(recorder.runs[0]?.inputs).toEqual(inputs);
});

test('a promise is observed only if its rejection cannot be hidden, and a lazy one is not started', async () => {
  const recorder = record();
  const rejections = unhandledRejections();
  const start = vi.fn(async () => 'row');
  class Query {
    // biome-ignore lint/suspicious/noThenProperty: a query that starts when it is awaited
    then = (...reactions: Parameters<Promise<string>['then']>) => start().then(...reactions);
  }
  const later = new Promise((resolve) => setImmediate(resolve)).then(() => Promise.reject(2));
  const call = traceable(async (...[first]: unknown[]) => await first);
  const handled = Promise.reject(3);
  await Promise.all([call(new Query(), new Query(), later, Promise.reject(1), handled), handled.catch(() => {})]);
  await expect.poll(rejections).toEqual([1, 2]);
  expect(recorder.runs[0]?.inputs).toEqual({ args: ['row', expect.any(Object), ...Array(3).fill('[Promise]')] });
  expect(start).toHaveBeenCalledTimes(1);
});

test('the end of a run replaces the inputs of a start that is already sent', async () => {
  const receiver = await startReceiver();
  const exporter = configure({ endpoint: receiver.url, limits: { startDelayMs: 1, lingerMs: 1 } });
  const inputs = async () => (await receiver.runs({})).map((run) => run.inputs);
  const read = async (input: AsyncIterable<number>) => {
    await expect.poll(inputs).toEqual([{ input: '[AsyncGenerator]' }]);
    await readAll(input);
  };
  await traceable(read)(count());
  await exporter.close();
  expect(await inputs()).toEqual([{ input: [1, 2, 3] }]);
});
