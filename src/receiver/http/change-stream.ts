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

/** Counts the open change streams. */
export class ChangeStreams {
  readonly #limit = new SharedLimit(STREAMS_MAX);
  /** Oldest first. */
  readonly #open = new Set<{ readonly tenant: string; readonly socket: Socket }>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * Counts a stream until the signal of the scope aborts. If no stream is free for the tenant, closes the oldest stream of
   * the tenant that has the most, and at least two more: its client connects again, and other streams may never end.
   * Throws an HTTP 503 error if there is no such tenant.
   */
  add({ tenant, signal }: Scope, socket: Socket): void {
    if (signal?.aborted) return;
    if (!this.#limit.take(tenant, 1)) {
      const [largest] = [...this.#open].sort((one, other) => this.#numberOf(other) - this.#numberOf(one));
      if (largest === undefined || this.#numberOf(largest) < this.#limit.usedBy(tenant) + 2) throw tooMany();
      this.#remove(largest);
      largest.socket.destroy();
      if (!this.#limit.take(tenant, 1)) throw tooMany();
    }
    const stream = { tenant, socket };
    this.#open.add(stream);
    signal?.addEventListener('abort', () => this.#remove(stream));
  }

  #numberOf({ tenant }: { readonly tenant: string }): number {
    return this.#limit.usedBy(tenant);
  }

  #remove(stream: { readonly tenant: string; readonly socket: Socket }): void {
    if (this.#open.delete(stream)) this.#limit.add(stream.tenant, -1);
  }
}

function tooMany(): HttpError {
  const detail = 'Too many change streams are open: close a page, or try again later';
  return new HttpError(503, detail, { 'retry-after': `${STREAM_RETRY_S}` });
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
