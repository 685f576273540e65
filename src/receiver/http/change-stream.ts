import type { Socket } from 'node:net';
import type { Scope } from '../domain/query/query.ts';
import { SharedLimit } from '../domain/shared-limit.ts';
import type { ChangeFeed } from '../store/store.ts';
import { HttpError } from './http-error.ts';

/** Time within which changes are combined into one event, in milliseconds. */
const GATHER_MS = 100;
/** Interval between comments that keep an idle connection open, in milliseconds. */
const HEARTBEAT_MS = 15_000;
/** If more traces have changed, the event lists none, and the client reloads everything. */
const TRACES_MAX = 1_000;
/** Each stream uses one of the server's 1,000 connections. The others are for clients that send runs. */
const STREAMS_MAX = 100;
const STREAM_RETRY_S = 5;

/** The open change streams. */
export class ChangeStreams {
  readonly #limit = new SharedLimit(STREAMS_MAX);
  /** Functions that close the streams, oldest first, with their tenants. */
  readonly #open = new Map<() => void, string>();

  get size(): number {
    return this.#limit.total;
  }

  /**
   * Counts a stream until the signal of the scope aborts. If none is free, closes the oldest one of the tenant with the
   * most, if these are at least two more: clients connect again, and other streams may never end. If there is no such
   * tenant, throws an HTTP 503 error.
   */
  add({ tenant, signal }: Scope, socket: Socket): void {
    if (signal?.aborted) return;
    if (!this.#limit.take(tenant, 1)) {
      const numberOf = (name = tenant): number => this.#limit.usedBy(name);
      const [close, largest] = [...this.#open].sort(([, one], [, other]) => numberOf(other) - numberOf(one))[0] ?? [];
      if (close === undefined || numberOf(largest) < numberOf() + 2) {
        const detail = 'Too many change streams are open: close a page, or try again later';
        throw new HttpError(503, detail, { 'retry-after': `${STREAM_RETRY_S}` });
      }
      close();
      this.#limit.add(tenant, 1);
    }
    const close = (): void => {
      if (this.#open.delete(close)) this.#limit.add(tenant, -1);
      socket.destroy();
    };
    this.#open.set(close, tenant);
    signal?.addEventListener('abort', close);
  }
}

/**
 * Yields a store's changes as server-sent events until the signal aborts, or until `isAdmitted` returns false before an
 * event. The first event is `ready`. A client that reads its data after this event misses no later change.
 */
export async function* changeStream(
  store: ChangeFeed,
  scope: Scope,
  ended: AbortSignal,
  isAdmitted: () => Promise<boolean>,
): AsyncGenerator<string> {
  let traceIds = new Set<string>();
  let wake = (): void => {};
  const unsubscribe = store.subscribe(scope, (change) => {
    if (traceIds.size <= TRACES_MAX) for (const id of change.traceIds) traceIds.add(id);
    wake();
  });
  try {
    yield event('ready', {});
    while (!ended.aborted) {
      if (traceIds.size === 0) {
        await pause(HEARTBEAT_MS, ended, (done) => {
          wake = done;
        });
      }
      const hasChanged = traceIds.size > 0;
      if (hasChanged) await pause(GATHER_MS, ended);
      if (ended.aborted || !(await isAdmitted())) return;
      if (!hasChanged) {
        yield ': no change\n\n';
        continue;
      }
      const trace_ids = [...traceIds];
      traceIds = new Set();
      yield event('change', trace_ids.length > TRACES_MAX ? {} : { trace_ids });
    }
  } finally {
    unsubscribe();
  }
}

function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Resolves after `ms` milliseconds, or earlier if the signal aborts or the function passed to `onStart` is called. */
function pause(ms: number, signal: AbortSignal, onStart: (done: () => void) => void = () => {}): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    onStart(done);
    if (signal.aborted) done();
  });
}
