import { monotonicNowMs } from '../../base/clock.ts';
import { clearTimer, setTimer } from '../../base/timers.ts';
import type { ResourceLike } from '../span-like.ts';

/** Timeout of a flush. Must be shorter than the 30 s timeout of tracer providers, so that they receive the result. */
const FLUSH_TIMEOUT_MS = 29_000;

/** Limits each flush to one timeout. A flush that timed out and a shutdown right after it share this timeout. */
export class FlushTime {
  readonly #timeoutMs: number;
  /** The time at which the last flush timed out, or -Infinity if no flush timed out. */
  #endMs = Number.NEGATIVE_INFINITY;

  constructor(timeoutMs: number = FLUSH_TIMEOUT_MS) {
    this.#timeoutMs = timeoutMs;
  }

  /** Calls `flush` with the full timeout. `flush` resolves to true if everything was delivered. */
  async whole(flush: (timeoutMs: number) => Promise<boolean>): Promise<void> {
    const endMs = monotonicNowMs() + this.#timeoutMs;
    const isDelivered = await flush(this.#timeoutMs);
    this.#endMs = isDelivered ? Number.NEGATIVE_INFINITY : endMs;
  }

  /**
   * Milliseconds for the flush at shutdown: the full timeout, or the remaining time of a flush that has recently timed
   * out.
   */
  get lastMs(): number {
    const leftMs = this.#endMs - monotonicNowMs();
    return leftMs < -this.#timeoutMs ? this.#timeoutMs : Math.max(0, leftMs);
  }
}

const WAIT_MAX_MS = 1_500;

/** The promise that waits for each resource. Each resource is waited for only once. */
const waits = new WeakMap<ResourceLike, Promise<void>>();
const unfinished = new Set<Promise<void>>();

/**
 * Settles when the pending attributes of a resource are known, or at the time limit. Returns undefined if no attribute
 * is pending. Never rejects. Keeps the process alive, because the waiting runs are incomplete.
 */
export function resourceWait(resource: ResourceLike): Promise<void> | undefined {
  if (resource?.asyncAttributesPending !== true) return undefined;
  const known = waits.get(resource);
  if (known !== undefined) return unfinished.has(known) ? known : undefined;
  const wait = settledOrLate(resource);
  waits.set(resource, wait);
  unfinished.add(wait);
  void wait.then(() => unfinished.delete(wait));
  return wait;
}

/** Waits for all resources with pending attributes, before a flush. Returns the elapsed milliseconds. Never rejects. */
export async function resourcesSettled(): Promise<number> {
  if (unfinished.size === 0) return 0;
  const startedMs = monotonicNowMs();
  await Promise.all(unfinished);
  return monotonicNowMs() - startedMs;
}

async function settledOrLate(resource: ResourceLike): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimer(resolve, WAIT_MAX_MS);
  });
  try {
    await Promise.race([resource.waitForAsyncAttributes?.(), late]);
  } catch {
    // A resource detector failed, so its attributes are missing.
  } finally {
    clearTimer(timer);
  }
}
