import { monotonicNowMs } from '../../base/clock.ts';
import { delay, setSoon } from '../../platform/timers.ts';
import type { RunSink } from '../../run/sink.ts';
import type { ResourceLike } from '../span-like.ts';

/** Timeout for a flush, in milliseconds. Tracer providers time out after 30 s, so they still receive the result. */
const FLUSH_TIMEOUT_MS = 29_000;

/** Limits each flush to one timeout. If a shutdown follows a flush that has just timed out, both share one timeout. */
export class FlushTime {
  readonly #timeoutMs: number;
  /** Time at which the last flush timed out. `-Infinity` if none has. */
  #endMs = Number.NEGATIVE_INFINITY;

  constructor(timeoutMs: number = FLUSH_TIMEOUT_MS) {
    this.#timeoutMs = timeoutMs;
  }

  /** Calls `flush` with the full timeout, and throws the error that it returns if not all runs were delivered. */
  async whole(flush: (timeoutMs: number) => Promise<unknown>): Promise<void> {
    const endMs = monotonicNowMs() + this.#timeoutMs;
    const error = await flush(this.#timeoutMs);
    // A timer may fire early.
    this.#endMs = error !== undefined && monotonicNowMs() > endMs - 1_000 ? endMs : Number.NEGATIVE_INFINITY;
    if (error !== undefined) throw error;
  }

  /** Timeout for the flush at shutdown, in milliseconds: the remaining time if a flush has just timed out. */
  get lastMs(): number {
    const leftMs = this.#endMs - monotonicNowMs();
    return leftMs < -this.#timeoutMs ? this.#timeoutMs : Math.max(0, leftMs);
  }
}

/** Flushes a sink. Rejects if runs were not delivered. */
export async function deliver(sink: RunSink, timeoutMs: number): Promise<void> {
  const droppedBefore = sink.stats?.().dropped ?? 0;
  const { ok, pending } = await sink.flush({ timeoutMs });
  const { dropped = droppedBefore, lastError } = sink.stats?.() ?? {};
  if (ok && dropped === droppedBefore) return;
  const why = lastError === undefined ? '' : `; the last error was: ${lastError.message}`;
  const counts = `${pending} are pending, ${dropped - droppedBefore} were dropped`;
  throw new Error(`RunSpanProcessor: runs were not delivered: ${counts}${why}`);
}

const WAIT_MAX_MS = 1_500;

/** The wait for each resource, so that each resource is waited for only once. Undefined once it is over. */
const waits = new WeakMap<ResourceLike, Promise<void> | undefined>();

/**
 * Waits until the resource's pending attributes are known, or until the time limit. Returns undefined if no attribute
 * is pending. Never rejects. Keeps the process alive, because the waiting runs are incomplete.
 */
export function resourceWait(resource: ResourceLike): Promise<void> | undefined {
  if (resource?.asyncAttributesPending !== true) return undefined;
  if (waits.has(resource)) return waits.get(resource);
  const wait = settledOrLate(resource).then(() => void waits.set(resource, undefined));
  waits.set(resource, wait);
  return wait;
}

async function settledOrLate(resource: ResourceLike): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([resource.waitForAsyncAttributes?.(), delay(WAIT_MAX_MS, over.signal, true)]);
  } catch {
    // If a resource detector fails, its attributes are missing.
  }
  over.abort();
}

/** Callbacks that end what can no longer end by itself. Called when the process is about to end. */
const atEnd: Set<() => void> = new Set();

/** Calls `callback` when the event loop is empty. No span can end and no response can be read after that. */
export function watchForEnd(callback: () => void): void {
  if (atEnd.has(callback)) return;
  atEnd.add(callback);
  process.off('beforeExit', endAllWaiting);
  process.on('beforeExit', endAllWaiting);
}

export function unwatchEnd(callback: () => void): void {
  atEnd.delete(callback);
}

function endAllWaiting(): void {
  process.off('beforeExit', endAllWaiting);
  for (const callback of atEnd) callback();
  atEnd.clear();
  // Keeps the event loop alive for one more turn. `beforeExit` then fires again, and the exporter delivers the runs.
  setSoon(() => {});
}
