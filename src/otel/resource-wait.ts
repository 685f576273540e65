import { clearTimer, setTimer } from '../base/timers.ts';
import type { ResourceLike } from './span-like.ts';

/** Shorter than the end of the process waits for what is not delivered: what waits here is not lost there. */
const WAIT_MAX_MS = 1_500;

/** Of each resource, the one wait for it; the attributes of one that has been waited for in vain are not waited for again. */
const waits = new WeakMap<ResourceLike, Promise<void>>();

/**
 * Settles once the attributes that a resource is still finding out are there, or have taken too long; undefined when there is
 * nothing to wait for. Never rejects.
 */
export function resourceWait(resource: ResourceLike, limitMs: number = WAIT_MAX_MS): Promise<void> | undefined {
  if (resource?.asyncAttributesPending !== true) return undefined;
  const known = waits.get(resource);
  if (known !== undefined) return isOver.has(known) ? undefined : known;
  const wait = settledOrLate(resource, limitMs);
  waits.set(resource, wait);
  void wait.then(() => isOver.add(wait));
  return wait;
}

const isOver = new WeakSet<Promise<void>>();

async function settledOrLate(resource: ResourceLike, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimer(resolve, limitMs).unref();
  });
  try {
    await Promise.race([resource.waitForAsyncAttributes?.(), late]);
  } catch {
    // A detector of the application has failed; its attributes are missing, as they are for everybody else.
  } finally {
    clearTimer(timer);
  }
}
