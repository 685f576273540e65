import type { AsyncLocalStorage } from 'node:async_hooks';
import type * as node from './node.ts';

// Replaces `node.ts` on Workers and on Vercel's edge runtime. The substitutes have only what the library calls.

const modules: Readonly<Record<string, unknown>> = {
  'node:crypto': {
    randomBytes: (bytes: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))),
    createHash: () => new Sha1(),
  },
  // The web streams of these runtimes have no such functions, and there are no streams of Node.
  'node:stream': { Stream: class {}, finished() {}, isErrored: () => false },
  'node:util': { promisify: (fn: unknown) => fn },
  'node:zlib': {
    gzip: async (bytes: Uint8Array<ArrayBuffer>) => {
      const gzipped = new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'));
      return new Uint8Array(await new Response(gzipped).arrayBuffer());
    },
  },
};

export const nodeModule = ((name: string) => modules[name]) as typeof node.nodeModule;

const tagOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);
const hasTag =
  (...tags: readonly string[]) =>
  (value: unknown): boolean =>
    tags.includes(tagOf(value));

export const types = {
  isAnyArrayBuffer: hasTag('ArrayBuffer', 'SharedArrayBuffer'),
  isAsyncFunction: hasTag('AsyncFunction', 'AsyncGeneratorFunction'),
  isBoxedPrimitive: (value: unknown): boolean =>
    typeof value === 'object' && hasTag('Number', 'String', 'Boolean', 'Symbol', 'BigInt')(value),
  isDate: (value: unknown): boolean => value instanceof Date,
  isGeneratorFunction: hasTag('GeneratorFunction', 'AsyncGeneratorFunction'),
  isGeneratorObject: hasTag('Generator', 'AsyncGenerator'),
  isMap: (value: unknown): boolean => value instanceof Map,
  isMapIterator: hasTag('Map Iterator'),
  isNativeError: (value: unknown): boolean => value instanceof Error,
  isPromise: (value: unknown): boolean => value instanceof Promise,
  isProxy: (): boolean => false,
  isRegExp: (value: unknown): boolean => value instanceof RegExp,
  isSet: (value: unknown): boolean => value instanceof Set,
  isSetIterator: hasTag('Set Iterator'),
} as unknown as typeof node.types;

/** Calls the function in the current context, which belongs to the request that delivers the runs. */
export class AsyncResource {
  runInAsyncScope<Result, Args extends unknown[]>(fn: (...args: Args) => Result, self: unknown, ...args: Args): Result {
    return Reflect.apply(fn, self, args);
  }
}

interface Globals {
  readonly AsyncLocalStorage?: new () => AsyncLocalStorage<unknown>;
  readonly EdgeRuntime?: string;
  readonly process?: {
    readonly env?: NodeJS.ProcessEnv;
    readonly getBuiltinModule?: typeof process.getBuiltinModule;
  };
}
const globals = globalThis as unknown as Globals;

/** Without an `AsyncLocalStorage`, a store is current only until the first `await`. */
class SynchronousStorage {
  #store: unknown;

  getStore(): unknown {
    return this.#store;
  }

  run(store: unknown, fn: (...args: unknown[]) => unknown, ...args: unknown[]): unknown {
    const before = this.#store;
    this.#store = store;
    try {
      return fn(...args);
    } finally {
      this.#store = before;
    }
  }
}

export const createStorage = (() => {
  // Workers have the module with the flag `nodejs_compat`, and Vercel's edge runtime has the global.
  const Storage =
    globals.AsyncLocalStorage ?? globals.process?.getBuiltinModule?.('node:async_hooks')?.AsyncLocalStorage;
  return new (Storage ?? SynchronousStorage)();
}) as typeof node.createStorage;

export const channel = ((name: string) => ({ name, hasSubscribers: false })) as unknown as typeof node.channel;

/** A timer with the methods of Node's. It ends with its request. */
class Timer {
  readonly id: unknown;

  constructor(callback: () => void, ms: number) {
    this.id = globalThis.setTimeout(callback, ms);
  }

  unref(): this {
    return this;
  }

  refresh(): void {}
}

export const setTimeout = ((callback: () => void, ms: number) =>
  new Timer(callback, ms)) as unknown as typeof node.setTimeout;

export const clearTimeout = ((timer: Timer | undefined) =>
  globalThis.clearTimeout(timer?.id as number)) as unknown as typeof node.clearTimeout;

/** A microtask, because it belongs to no request. */
export const setImmediate = ((callback: () => void) => {
  queueMicrotask(callback);
  return { unref() {} };
}) as unknown as typeof node.setImmediate;

export const runtime: typeof node.runtime = {
  runtime: globals.EdgeRuntime === undefined ? 'workerd' : 'edge-light',
  runtime_version: '',
  platform: '',
};

export const environment: typeof node.environment = () => globals.process?.env ?? {};

export const allowListeners: typeof node.allowListeners = () => {};

/** SHA-1 of one short text, which derives run ids from keys (RFC 3174). */
class Sha1 {
  #bytes: Uint8Array = new Uint8Array();

  update(part: string | Uint8Array): this {
    this.#bytes = Buffer.concat([this.#bytes, Buffer.from(part as string)]);
    return this;
  }

  digest(): Buffer {
    const { length } = this.#bytes;
    const padded = new Uint8Array(Math.ceil((length + 9) / 64) * 64);
    padded.set(this.#bytes);
    padded[length] = 0x80;
    const view = new DataView(padded.buffer);
    view.setUint32(padded.length - 4, length * 8);
    const hash = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
    for (let at = 0; at < padded.length; at += 64) addBlock(hash, view, at);
    for (const [index, word] of hash.entries()) view.setUint32(index * 4, word);
    return Buffer.from(padded.buffer, 0, 20);
  }
}

const rotated = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));

function addBlock(hash: number[], view: DataView, at: number): void {
  const words = Array.from({ length: 16 }, (_, index) => view.getInt32(at + index * 4));
  let [a, b, c, d, e] = hash as [number, number, number, number, number];
  for (let round = 0; round < 80; round++) {
    if (round >= 16) {
      const mixed = [3, 8, 14, 16].reduce((sum, back) => sum ^ (words[round - back] as number), 0);
      words.push(rotated(mixed, 1));
    }
    const quarter = Math.floor(round / 20);
    const f = quarter === 0 ? (b & c) | (~b & d) : quarter === 2 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
    const k = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6][quarter] as number;
    [a, b, c, d, e] = [(rotated(a, 5) + f + e + k + (words[round] as number)) | 0, a, rotated(b, 30), c, d];
  }
  for (const [index, word] of [a, b, c, d, e].entries()) hash[index] = ((hash[index] as number) + word) | 0;
}
