import { onTestFinished } from 'vitest';

/** Collects unhandled rejections. The returned function waits for pending rejections and returns all reasons. */
export function unhandledRejections(): () => Promise<unknown[]> {
  const reasons: unknown[] = [];
  const onRejection = (reason: unknown): void => void reasons.push(reason);
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', onRejection);
  onTestFinished(() => {
    process.off('unhandledRejection', onRejection);
    for (const other of others) process.on('unhandledRejection', other);
  });
  return async () => {
    // Node reports rejections after all microtasks, before the next immediate.
    await new Promise((resolve) => setImmediate(resolve));
    return reasons;
  };
}
