import { onTestFinished } from 'vitest';

/** The rejections that nobody has handled, by the time the returned function has been called. */
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
    // They are told when the microtasks have run dry, before the next immediate.
    await new Promise((resolve) => setImmediate(resolve));
    return reasons;
  };
}
