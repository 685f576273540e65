/**
 * The entry point for browsers. Nothing is recorded, because a page must not contain an API key. Functions, methods and
 * handlers stay unchanged, and headers pass on a run that the page has received.
 */
import { clock } from './base/clock.ts';
import { diagnostics } from './base/diagnostics.ts';
import { SynchronousStorage } from './base/storage.edge.ts';
import { newRunId } from './run/ids.ts';
import { dottedOrder, parseDottedOrder } from './run/time.ts';

export { errorCodes, RunspanError } from './base/errors.ts';
export { secretPatterns } from './payload/secret-patterns.ts';
export { runIdFrom } from './run/ids.ts';

type Callable = (...args: unknown[]) => unknown;
type AnyHeaders = Readonly<Record<string, unknown>> | Headers | undefined;

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
  const droppedByReason = { queue_full: 0, too_large: 0, rejected: 0, expired: 0, corrupt: 0, closed: 0 };
  const rest = { sampledOut: 0, requests: { multipart: 0, simple: 0 }, backlog: { bytes: 0, oldestMs: 0 } };
  return { ...counts, droppedByReason, ...rest, latency: undefined, lastError: undefined };
}

export function traceable(fn: Callable): unknown {
  if (typeof fn !== 'function') return fn;
  const wrapper: unknown = new Proxy(fn, {
    get: (target, key) => (key === 'with' && !(key in target) ? () => wrapper : Reflect.get(target, key)),
  });
  return wrapper;
}

export function traced(...args: unknown[]): unknown {
  // A decorator that returns undefined does not change its member.
  if (args.length > 1) return undefined;
  return typeof args[0] === 'function' ? args[0] : () => undefined;
}

export const traceMethods = (target: unknown): unknown => target;
export const withFlush = (handler: unknown): unknown => handler;
export const withExporter = (_: unknown, fn: () => unknown): unknown => fn();
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

// ── Headers ──

interface RemoteRun {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly isSampled: boolean;
}

const storage = new SynchronousStorage();

const remoteRuns = new WeakSet<object>();

/** Makes a remote run current until `fn` returns or, if `fn` is asynchronous, until its first `await`. */
export function withRun(run: object | undefined, fn: () => unknown): unknown {
  return run !== undefined && remoteRuns.has(run) ? storage.run(run, fn) : fn();
}

export function fromHeaders(headers: AnyHeaders): RemoteRun | undefined {
  try {
    const given = plainHeaders(headers);
    for (const prefix of ['runspan', 'langsmith']) {
      const order = given[`${prefix}-trace`];
      const segments = order === undefined ? undefined : parseDottedOrder(order);
      const [first, last] = [segments?.at(0), segments?.at(-1)];
      if (order === undefined || first === undefined || last === undefined) continue;
      const isSampled = !new RegExp(`(^|,)\\s*${prefix}-sampled=false`).test(given.baggage ?? '');
      const run = { id: last.id, traceId: first.id, dottedOrder: order, isSampled };
      remoteRuns.add(run);
      return run;
    }
  } catch {
    // A getter of the headers threw.
  }
  return undefined;
}

export function toHeaders(_?: unknown, headers?: AnyHeaders): Record<string, string> {
  const result = plainHeaders(headers, (name) => name);
  const run = storage.getStore() as RemoteRun | undefined;
  if (run === undefined) return result;
  const keyOf = (name: string): string => Object.keys(result).find((key) => key.toLowerCase() === name) ?? name;
  result[keyOf('runspan-trace')] = run.dottedOrder;
  const key = keyOf('baggage');
  if (!run.isSampled) result[key] = [result[key], 'runspan-sampled=false'].filter(Boolean).join(',');
  return result;
}

function plainHeaders(headers: AnyHeaders, keyOf = (name: string) => name.toLowerCase()): Record<string, string> {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers ?? {});
  const texts = entries.filter(([, value]) => typeof value === 'string' || typeof value === 'number');
  return Object.fromEntries(texts.map(([name, value]) => [keyOf(name), String(value)]));
}
