import type { AsyncLocalStorage } from 'node:async_hooks';
import type * as node from './node.ts';
import { SynchronousStorage } from './storage.edge.ts';

export { AsyncResource } from './storage.edge.ts';

// Replaces `node.ts` on Cloudflare Workers and Vercel's edge runtime.

const modules: Readonly<Record<string, unknown>> = {
  // These runtimes have no Node streams.
  'node:stream': { Stream: class {}, finished() {}, isErrored: () => false },
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

interface Globals {
  readonly AsyncLocalStorage?: new () => AsyncLocalStorage<unknown>;
  readonly EdgeRuntime?: string;
  readonly process?: {
    readonly env?: NodeJS.ProcessEnv;
    readonly getBuiltinModule?: typeof process.getBuiltinModule;
  };
}
const globals = globalThis as unknown as Globals;

export const createStorage = (() => {
  // Cloudflare Workers provide `node:async_hooks` if `nodejs_compat` is set. Vercel's edge runtime has a global
  // `AsyncLocalStorage`.
  const Storage =
    globals.AsyncLocalStorage ?? globals.process?.getBuiltinModule?.('node:async_hooks')?.AsyncLocalStorage;
  return new (Storage ?? SynchronousStorage)();
}) as typeof node.createStorage;

export const channel = ((name: string) => ({ name, hasSubscribers: false })) as unknown as typeof node.channel;

/** Adds the methods of Node's timers to a timer id. The timer is cancelled when its request ends. */
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

/** Uses a microtask, because microtasks are not bound to a request. */
export const setImmediate = ((callback: () => void) => {
  queueMicrotask(callback);
  return { unref() {} };
}) as unknown as typeof node.setImmediate;

export const isPerRequest = true;

export const runtime: typeof node.runtime = {
  runtime: globals.EdgeRuntime === undefined ? 'workerd' : 'edge-light',
  runtime_version: '',
  platform: '',
};

export const environment: typeof node.environment = () => globals.process?.env ?? {};

export const allowListeners: typeof node.allowListeners = () => {};
