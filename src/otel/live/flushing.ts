import { monotonicNowMs } from '../../base/clock.ts';
import { clearTimer, setTimer } from '../../base/timers.ts';
import type { ResourceLike } from '../span-like.ts';

/** Timeout for a flush. Shorter than the 30 s timeout of tracer providers, so that providers receive the result. */
const FLUSH_TIMEOUT_MS = 29_000;

/** Limits each flush to one timeout. A shutdown right after a flush that timed out shares its timeout. */
export class FlushTime {
  readonly #timeoutMs: number;
  /** Time at which the last flush timed out. -Infinity if none did. */
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
   * Timeout for the flush at shutdown, in milliseconds: the full timeout, or what remains after a flush that has
   * recently timed out.
   */
  get lastMs(): number {
    const leftMs = this.#endMs - monotonicNowMs();
    return leftMs < -this.#timeoutMs ? this.#timeoutMs : Math.max(0, leftMs);
  }
}

const WAIT_MAX_MS = 1_500;

/** Promises that wait for a resource, so that each resource is waited for only once. */
const waits = new WeakMap<ResourceLike, Promise<void>>();
const unfinished = new Set<Promise<void>>();

/**
 * Settles when the resource's pending attributes are known, or at the time limit. Returns undefined if no attribute is
 * pending. Never rejects. Keeps the process alive, because the waiting runs are incomplete.
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

/** Waits for all resources with pending attributes before a flush. Returns the elapsed milliseconds. Never rejects. */
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
