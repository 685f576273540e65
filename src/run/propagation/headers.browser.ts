import { SynchronousStorage } from '../../platform/storage.edge.ts';
import { parseDottedOrder } from '../time.ts';

type AnyHeaders = Readonly<Record<string, unknown>> | Headers | undefined;

interface RemoteRun {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly isSampled: boolean;
}

const storage = new SynchronousStorage();

const remoteRuns = new WeakSet<object>();

/** Makes a remote run the current run until `fn` returns, or until the first `await` in `fn`. */
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
    // A getter on the headers threw an error.
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
