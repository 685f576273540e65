/** A clock that stands still until a test moves it on. */
export interface VirtualTime {
  readonly monotonicMs: () => number;
  readonly random: () => number;
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
  /** The waits that have begun, in milliseconds. */
  readonly waits: readonly number[];
  /** How many wait now. */
  readonly sleepers: number;
  advance(ms: number): void;
}

/** With `isQuick` every wait passes at once, and the clock moves on by it. */
export function virtualTime(isQuick = false, random = 0): VirtualTime {
  const sleepers = new Map<() => void, number>();
  const waits: number[] = [];
  let nowMs = 0;
  const advance = (ms: number): void => {
    nowMs += ms;
    for (const [wake, untilMs] of sleepers) if (untilMs <= nowMs) wake();
  };
  return {
    monotonicMs: () => nowMs,
    random: () => random,
    delay: (ms, signal) =>
      new Promise((resolve, reject) => {
        waits.push(ms);
        const abort = (): void => {
          sleepers.delete(wake);
          reject(signal.reason);
        };
        const wake = (): void => {
          sleepers.delete(wake);
          signal.removeEventListener('abort', abort);
          resolve();
        };
        if (signal.aborted) return abort();
        if (ms <= 0) return resolve();
        sleepers.set(wake, nowMs + ms);
        signal.addEventListener('abort', abort, { once: true });
        if (isQuick) setImmediate(() => advance(ms));
      }),
    waits,
    get sleepers() {
      return sleepers.size;
    },
    advance,
  };
}

/** Resolves when the condition holds, which something that is under way brings about. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Lets everything happen that is due now. */
export async function turns(count = 3): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
