import { monotonicNowMs } from '../base/clock.ts';
import { shared } from '../base/shared.ts';
import { delay } from '../platform/timers.ts';
import type { EncodedRun } from './encoded-run.ts';

/** Maximum number of ended runs that wait. Above this number, the oldest is released. */
const DELAYED_MAX = 10_000;

/** A run that has ended, but whose end waits for a part of its content. */
export interface DelayedEnd {
  readonly run: EncodedRun;
  /** Passes the end on without what is missing. */
  release(): void;
  /** Resolves when the end was passed on. */
  readonly released: Promise<unknown>;
}

/** All ended runs that wait, whatever for. A flush waits for those of its exporter. */
const delayed: Set<DelayedEnd> = shared('delayedEnds', () => new Set());

export function delayEnd(end: DelayedEnd): void {
  delayed.add(end);
  const [oldest] = delayed;
  if (delayed.size > DELAYED_MAX) oldest?.release();
}

/** Called when the end is passed on. Returns false if it was before. */
export function stopDelay(end: DelayedEnd): boolean {
  return delayed.delete(end);
}

/** Calls `end` when `known` resolves, or when the run is released. `known` never rejects. */
export function endAfter(known: Promise<unknown>, run: EncodedRun, end: () => void): void {
  const release = (): void => {
    if (stopDelay(entry)) end();
  };
  const entry: DelayedEnd = { run, release, released: known.then(release) };
  delayEnd(entry);
}

const any = (): boolean => true;

/**
 * Releases all runs, or those for which `isOwn` returns true, because nothing can wait any longer. Returns whether there
 * were any.
 */
export function releaseAll(isOwn: (end: DelayedEnd) => boolean = any): boolean {
  let isReleased = false;
  // Also visits runs that begin to wait during the iteration.
  for (const end of delayed) {
    if (!isOwn(end)) continue;
    end.release();
    isReleased = true;
  }
  return isReleased;
}

/**
 * Waits until the ends of all runs that have ended before this call were passed on, or of those for which `isOwn` returns
 * true, for at most `limitMs`. Resolves to the milliseconds left, and to the number of runs that still wait when the time
 * is over.
 */
export async function delayedEndsSettled(
  limitMs: number,
  isOwn: (end: DelayedEnd) => boolean = any,
): Promise<{ leftMs: number; waitingRuns: number }> {
  const waiting = (): DelayedEnd[] => [...delayed].filter(isOwn);
  if (waiting().length === 0) return { leftMs: limitMs, waitingRuns: 0 };
  const startedMs = monotonicNowMs();
  const settled = new AbortController();
  const over = (): boolean => true;
  const isOver = delay(limitMs, settled.signal, true).then(over, over);
  // A run waits at most three times: for a function of its own, for a function of its client, and for its resource.
  for (let round = 0; round < 3; round++) {
    const released = Promise.all(waiting().map((end) => end.released)).then(() => false);
    if (await Promise.race([isOver, released])) return { leftMs: 0, waitingRuns: waiting().length };
  }
  settled.abort();
  return { leftMs: Math.max(0, limitMs - (monotonicNowMs() - startedMs)), waitingRuns: 0 };
}
