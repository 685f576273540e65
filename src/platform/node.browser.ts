import { RunspanError } from '../base/errors.ts';
import type * as node from './node.ts';

export { AsyncResource } from './storage.edge.ts';

export const nodeModule = ((name: string) => {
  throw new RunspanError('RUNSPAN_INVALID_REQUEST', `This call needs ${name}, which browsers do not have`);
}) as typeof node.nodeModule;

/** Browsers cannot detect `Proxy` objects. */
export const types = {
  isPromise: (value: unknown): value is Promise<unknown> => value instanceof Promise,
  isProxy: (): boolean => false,
};

export const environment: typeof node.environment = () => ({});

export const allowListeners: typeof node.allowListeners = () => {};

export const setTimeout: typeof globalThis.setTimeout = globalThis.setTimeout;
export const setImmediate: typeof globalThis.setImmediate = globalThis.setImmediate;
export const clearTimeout: typeof globalThis.clearTimeout = globalThis.clearTimeout;
