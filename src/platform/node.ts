// Node's functions that the library uses. The builds for edge runtimes and browsers use `node.edge.ts` and
// `node.browser.ts` instead.
import type { AsyncLocalStorage } from 'node:async_hooks';

/** Loads a built-in module on demand. An `import` would slow down startup by milliseconds. */
export const nodeModule: typeof process.getBuiltinModule = process.getBuiltinModule;

export const types: typeof import('node:util').types = nodeModule('node:util').types;

export const AsyncResource: typeof import('node:async_hooks').AsyncResource =
  nodeModule('node:async_hooks').AsyncResource;

export const createStorage = <Store>(): AsyncLocalStorage<Store> =>
  new (nodeModule('node:async_hooks').AsyncLocalStorage)();

export const channel: typeof import('node:diagnostics_channel').channel =
  nodeModule('node:diagnostics_channel').channel;

// Saves the original functions, because an application's fake timers would stop delivery.
export const setTimeout: typeof globalThis.setTimeout = globalThis.setTimeout;
export const setImmediate: typeof globalThis.setImmediate = globalThis.setImmediate;
export const clearTimeout: typeof globalThis.clearTimeout = globalThis.clearTimeout;

/**
 * True on edge runtimes, where timers, connections and promises end with the request that created them. These runtimes
 * have no files, do not report the end of a process, and read response bodies without calling patched methods.
 */
export const isPerRequest: boolean = false;

/** Name, version and platform of the runtime. Recorded with each trace. */
export const runtime: Readonly<Record<'runtime' | 'runtime_version' | 'platform', string>> = {
  ...(otherRuntime() ?? { runtime: 'node', runtime_version: process.version }),
  platform: `${process.platform}-${process.arch}`,
};

export function environment(): NodeJS.ProcessEnv {
  return process.env;
}

/** Disables Node's warning about more than ten listeners on an `AbortSignal`. */
export function allowListeners(signal: AbortSignal): void {
  nodeModule('node:events').setMaxListeners(0, signal);
}

function otherRuntime(): { runtime: string; runtime_version: string } | undefined {
  const { bun, deno } = process.versions as Record<string, string | undefined>;
  if (bun !== undefined) return { runtime: 'bun', runtime_version: bun };
  return deno === undefined ? undefined : { runtime: 'deno', runtime_version: deno };
}
