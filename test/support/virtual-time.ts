import type { ExporterTime } from '#src/delivery/create-exporter.ts';

/** Returns a clock whose delays end in the next turn of the event loop. */
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

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

export async function turns(count = 3): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
