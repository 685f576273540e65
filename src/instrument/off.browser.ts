// The functions that the package exports in browsers. Browsers record no runs, because a page must not contain an API
// key.

import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { newRunId } from '../run/ids.ts';
import { dottedOrder } from '../run/time.ts';

const done = (): Promise<object> => Promise.resolve({ ok: true, pending: 0 });

export const flush: () => Promise<object> = done;
export const shutdown: () => Promise<object> = done;

const exporter: object = { stats, ready: () => Promise.resolve(), flush: done, close: done };

export function configure(options?: { readonly endpoint?: unknown; readonly apiKey?: unknown }): object {
  if (options?.endpoint !== undefined || options?.apiKey !== undefined) {
    diagnostics.warnOnce('browser', 'configure: nothing is recorded in browsers; trace on the server.');
  }
  return exporter;
}

export const createExporter: typeof configure = configure;

export function stats(): object {
  const counts = { created: 0, recovered: 0, open: 0, queued: 0, inFlight: 0, spooled: 0, sent: 0, dropped: 0 };
  const droppedByReason = { queue_full: 0, too_large: 0, rejected: 0, repeated: 0, expired: 0, corrupt: 0, closed: 0 };
  const rest = { sampledOut: 0, requests: { multipart: 0, simple: 0, otlp: 0 }, backlog: { bytes: 0, oldestMs: 0 } };
  return { ...counts, droppedByReason, ...rest, latency: undefined, lastError: undefined };
}

export function traceable(fn: (...args: unknown[]) => unknown): unknown {
  if (typeof fn !== 'function') return fn;
  const wrapper: unknown = new Proxy(fn, {
    get: (target, key) => (key === 'with' && !(key in target) ? () => wrapper : Reflect.get(target, key)),
  });
  return wrapper;
}

export function traced(...args: unknown[]): unknown {
  // If a decorator returns undefined, the class member does not change.
  if (args.length > 1) return undefined;
  return typeof args[0] === 'function' ? args[0] : () => undefined;
}

export const traceMethods = (target: unknown): unknown => target;
export const withFlush = (handler: unknown): unknown => handler;
export const withContext = (_: unknown, fn: () => unknown): unknown => fn();
export const withExporter: typeof withContext = withContext;
export const withTrace: typeof withContext = withContext;
export const redact = (): object => ({});

interface GivenRun {
  readonly id?: string;
  readonly name?: string;
  readonly runType?: string;
}

class Run {
  readonly id: string;
  readonly traceId: string;
  readonly parentRunId: string | undefined;
  readonly dottedOrder: string;
  readonly name: string;
  readonly runType: string;
  readonly inputs: undefined;
  readonly outputs: undefined;
  readonly error: undefined;
  readonly url: undefined;
  readonly tags: readonly string[] = [];
  readonly metadata: object = {};

  constructor({ id, name = '', runType = 'chain' }: GivenRun = {}, parent?: Run) {
    const startUs = clock.nowUs();
    this.id = id ?? newRunId(startUs);
    this.traceId = parent?.traceId ?? this.id;
    this.parentRunId = parent?.id;
    this.dottedOrder = dottedOrder(parent?.dottedOrder, startUs, this.id);
    this.name = name;
    this.runType = runType;
  }

  child(options: GivenRun): Run {
    return new Run(options, this);
  }

  attach(): void {}
  end(): void {}
  event(): void {}
  fail(): void {}
  set(): void {}
  [Symbol.dispose](): void {}
}

export const startRun = (options?: GivenRun): Run => new Run(options);

export const currentRun = (): undefined => undefined;
export const traceUrl: typeof currentRun = currentRun;
