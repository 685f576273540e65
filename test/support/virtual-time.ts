import type { ExporterTime } from '../../src/export/create-exporter.ts';

/** A clock of which every wait passes at once. */
export function quickTime(): ExporterTime {
  let nowMs = 0;
  return {
    monotonicMs: () => nowMs,
    random: () => 0,
    delay: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        setImmediate(() => {
          nowMs += ms;
          resolve();
        });
      }),
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
