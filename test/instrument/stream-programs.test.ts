// Programs that read streams and iterables. Each program runs bare and traced, and must see the same effects, also those of
// the source, so that laziness and back-pressure are compared.
import { PassThrough, Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { traceable } from '#src/instrument/traceable.ts';
import { readsInside } from '../support/reads-inside.ts';
import { record } from './recorder.ts';

type Log = (...effects: unknown[]) => void;
type Wrap = <Fn extends (...args: never[]) => unknown>(fn: Fn) => Fn;

const turn = () => new Promise(setImmediate);
const torn = () => new TypeError('torn');

interface Source {
  readonly chunks?: readonly string[];
  readonly error?: Error;
  readonly type?: 'bytes';
}

/** Returns functions that make streams whose sources log requests for chunks. */
function sources(log: Log) {
  const webStream = ({ chunks = ['a', 'b', 'c'], error, type }: Source = {}): ReadableStream => {
    let at = 0;
    const source = {
      pull(controller: ReadableStreamDefaultController) {
        log('pull', at);
        const chunk = chunks[at++];
        if (chunk !== undefined) controller.enqueue(type === 'bytes' ? new TextEncoder().encode(chunk) : chunk);
        else if (error !== undefined) controller.error(error);
        else {
          controller.close();
          (controller as unknown as ReadableByteStreamController).byobRequest?.respond(0);
        }
      },
      cancel: (reason: unknown) => log('cancelled', reason),
    };
    return new ReadableStream({ ...source, type } as typeof source, { highWaterMark: 0 });
  };
  const nodeStream = ({ chunks = ['a', 'b', 'c'], error }: Source = {}, options: object = {}): Readable => {
    let at = 0;
    return new Readable({
      encoding: 'utf8',
      highWaterMark: 1,
      read() {
        log('read', at);
        const chunk = chunks[at++];
        if (chunk !== undefined) this.push(chunk);
        else if (error !== undefined) this.destroy(error);
        else this.push(null);
      },
      ...options,
    });
  };
  /** A stream with a single chunk that never ends. */
  const endless = (): Readable => {
    let isRead = false;
    return nodeStream(
      {},
      {
        read(this: Readable) {
          if (!isRead) this.push('a');
          isRead = true;
        },
      },
    );
  };
  /** Can be iterated several times. */
  const pages = (): AsyncIterable<number> => ({
    async *[Symbol.asyncIterator]() {
      try {
        log('start');
        yield 1;
        yield 2;
      } finally {
        log('finally');
      }
    },
  });
  return { webStream, nodeStream, endless, pages };
}

interface Context extends ReturnType<typeof sources> {
  readonly wrap: Wrap;
  readonly log: Log;
}

async function readAll(log: Log, iterable: unknown): Promise<void> {
  for await (const chunk of iterable as AsyncIterable<unknown>) log('chunk', String(chunk));
}

const settled = (log: Log, promise: Promise<unknown>) =>
  promise.then(
    (value) => log('ok', value),
    ({ name, message }: Error) => log('failed', name, message),
  );

interface Expected {
  readonly chunks?: unknown;
  readonly error?: RegExp;
  readonly end?: 'cancelled';
  readonly isOpen?: true;
}

const cancelled = 'cancelled';
const bytes = (value: string) => ({
  type: expect.any(String),
  byteLength: value.length,
  base64: Buffer.from(value).toString('base64'),
});
/** Node 26 reads streams for `Response.clone` without calling methods of the stream or its reader. */
const ifMethodsAreCalled = (chunks: unknown[]) =>
  Number.parseInt(process.versions.node, 10) < 26 ? chunks : undefined;

const programs: Readonly<Record<string, [program: (context: Context) => unknown, run: Expected]>> = {
  'does not read a web stream': [
    async ({ wrap, log, webStream }) => {
      const stream = wrap(webStream)();
      await turn();
      log(stream instanceof ReadableStream, stream.locked, Object.keys(stream));
    },
    { isOpen: true },
  ],
  'leaves a web stream and reads on': [
    async ({ wrap, log, webStream }) => {
      const stream = wrap(webStream)();
      for await (const chunk of stream.values({ preventCancel: true })) {
        log('chunk', chunk);
        break;
      }
      log(stream.locked);
      await readAll(log, stream);
    },
    { chunks: ['a', 'b', 'c'] },
  ],
  'reads a web stream of bytes into its own buffer': [
    async ({ wrap, log, webStream }) => {
      const reader = wrap(webStream)({ type: 'bytes', chunks: ['ab', 'c'] }).getReader({ mode: 'byob' });
      log(reader instanceof ReadableStreamBYOBReader);
      let buffer = new Uint8Array(4);
      for (let step = 0; step < 2; step++) {
        const { value } = await reader.read(buffer);
        log('read', String(value), buffer.byteLength);
        buffer = new Uint8Array((value as Uint8Array<ArrayBuffer>).buffer);
      }
      await settled(log, reader.read(new Uint8Array(0)));
      await reader.cancel('enough');
    },
    { chunks: [bytes('ab'), bytes('c')], end: cancelled },
  ],
  'cancels both branches of a web stream': [
    async ({ wrap, log, webStream }) => {
      const [left, right] = wrap(webStream)().tee();
      const reader = left.getReader();
      log(await reader.read());
      await Promise.all([reader.cancel('left'), right.cancel('right')]);
    },
    { chunks: ['a'], end: cancelled },
  ],
  'responds with a web stream': [
    async ({ wrap, log, webStream }) => {
      const response = new Response(wrap(webStream)({ type: 'bytes' }));
      log(await response.text(), response.bodyUsed);
    },
    { chunks: [bytes('a'), bytes('b'), bytes('c')] },
  ],
  'clones a response': [
    async ({ wrap, log, webStream }) => {
      const stream = wrap(webStream)({ type: 'bytes' });
      const response = new Response(stream);
      log(response.body === stream, response.bodyUsed);
      log(await response.clone().text(), await response.text(), response.bodyUsed);
    },
    { chunks: ifMethodsAreCalled([bytes('a'), bytes('b'), bytes('c')]) },
  ],
  'converts a web stream to a Node stream': [
    async ({ wrap, log, webStream }) => log(await text(Readable.fromWeb(wrap(webStream)() as never))),
    { chunks: (await readsInside()) ? undefined : ['a', 'b', 'c'] },
  ],
  'converts a web stream that fails to a Node stream': [
    ({ wrap, log, webStream }) =>
      settled(log, readAll(log, Readable.fromWeb(wrap(webStream)({ chunks: [], error: torn() }) as never))),
    { error: /^TypeError: torn\n/ },
  ],
  'transfers a web stream': [
    async ({ wrap, log, webStream }) => {
      const stream = wrap(webStream)();
      log(await text(structuredClone(stream, { transfer: [stream as never] }) as never), stream.locked);
    },
    {},
  ],
  'reads a locked web stream': [
    async ({ wrap, log, webStream }) => {
      const stream = wrap(webStream)();
      stream.getReader();
      for (const method of ['getReader', 'tee', 'values'] as const) {
        try {
          stream[method]();
        } catch (error) {
          log(method, (error as Error).name, (error as { code: unknown }).code);
        }
      }
      await settled(log, stream.cancel());
      await settled(log, stream.pipeTo(new WritableStream()));
    },
    { isOpen: true },
  ],
  'does not read a Node stream': [
    async ({ wrap, log, nodeStream }) => {
      const stream = wrap(nodeStream)();
      await turn();
      log(stream.readableFlowing, stream.eventNames(), stream.listenerCount('data'));
      log(Object.keys(stream).includes('emit'));
    },
    { isOpen: true },
  ],
  'leaves a Node stream': [
    async ({ wrap, log, nodeStream }) => {
      const stream = wrap(nodeStream)();
      stream.on('close', () => log('close'));
      for await (const chunk of stream) {
        log('chunk', chunk);
        break;
      }
      log(stream.destroyed);
    },
    { chunks: ['a'], end: cancelled },
  ],
  'reads a Node stream by data events': [
    async ({ wrap, log, nodeStream }) => {
      const stream = wrap(nodeStream)();
      stream.on('data', (chunk) => log('data', chunk));
      await new Promise((resolve) => stream.on('end', resolve));
      log(stream.readableEnded);
    },
    { chunks: ['a', 'b', 'c'] },
  ],
  'reads a Node stream by readable events': [
    async ({ wrap, log, nodeStream }) => {
      const stream = wrap(nodeStream)();
      stream.on('readable', () => {
        for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) log('read', chunk);
      });
      await new Promise((resolve) => stream.on('close', resolve));
    },
    { chunks: ['ab', 'c'] },
  ],
  'has a Node stream in a pipeline': [
    async ({ wrap, log, nodeStream }) => {
      const write: NonNullable<ConstructorParameters<typeof Writable>[0]>['write'] = (chunk, _, done) => {
        log('write', String(chunk));
        done();
      };
      await settled(log, pipeline(wrap(nodeStream)(), new PassThrough(), new Writable({ write })));
    },
    { chunks: ['a', 'b', 'c'] },
  ],
  'aborts a pipeline': [
    async ({ wrap, log, endless }) => {
      const controller = new AbortController();
      const write = (chunk: unknown): void => {
        log('write', String(chunk));
        controller.abort();
      };
      await settled(log, pipeline(wrap(endless)(), new Writable({ write }), { signal: controller.signal }));
    },
    { chunks: ['a'], error: /^AbortError: /, end: cancelled },
  ],
  'converts a Node stream to a web stream': [
    ({ wrap, log, nodeStream }) =>
      readAll(log, Readable.toWeb(wrap(nodeStream)({}, { encoding: undefined, objectMode: true }))),
    { chunks: ['a', 'b', 'c'] },
  ],
  'destroys a Node stream': [
    async ({ wrap, log, nodeStream }) => {
      const stream = wrap(nodeStream)();
      stream.on('close', () => log('close'));
      stream.destroy();
      await turn();
    },
    { end: cancelled },
  ],
  'reads a Node stream that fails': [
    ({ wrap, log, nodeStream }) => settled(log, readAll(log, wrap(nodeStream)({ chunks: ['a'], error: torn() }))),
    { chunks: ['a'], error: /^TypeError: torn\n/ },
  ],
  'iterates an iterable twice': [
    async ({ wrap, log, pages }) => {
      const iterable = wrap(pages)();
      log(Object.keys(iterable), typeof (iterable as { next?: unknown }).next);
      await readAll(log, iterable);
      await readAll(log, iterable);
    },
    { chunks: [1, 2] },
  ],
  'does not iterate an iterable': [({ wrap, pages }) => void wrap(pages)(), { isOpen: true }],
  'passes iterables as arguments': [
    async ({ wrap, log, pages, webStream, nodeStream }) => {
      const given = [pages(), webStream(), nodeStream()] as const;
      const read = wrap(async (...args: unknown[]) => {
        log(args.map((arg, at) => arg === given[at]));
        for (const arg of args) await readAll(log, arg);
      });
      await read(...(given as unknown as never[]));
    },
    {},
  ],
};

test.each(Object.entries(programs))('a program that %s sees the same with tracing', async (_, [program, expected]) => {
  const recorder = record();
  const effectsWith = async (wrap: Wrap): Promise<unknown[]> => {
    const effects: unknown[] = [];
    const log: Log = (...effect) => void effects.push(effect);
    await program({ wrap, log, ...sources(log) });
    await turn();
    return effects;
  };
  const bare = await effectsWith((fn) => fn);
  expect(recorder.runs).toEqual([]);
  expect(await effectsWith(traceable)).toEqual(bare);
  const { chunks, error, end, isOpen } = expected;
  const [run, ...others] = recorder.runs;
  expect(others).toEqual([]);
  expect('end_time' in (run ?? {})).toBe(isOpen === undefined);
  expect(run?.outputs?.outputs).toEqual(chunks);
  expect(run?.error).toEqual(error && expect.stringMatching(error));
  expect(run?.extra?.metadata).toBeUndefined();
  expect(run?.extra?.runspan_end_reason).toBe(end);
  expect(run?.events?.map(({ name }) => name)).toEqual(chunks === undefined ? undefined : ['new_token']);
});
