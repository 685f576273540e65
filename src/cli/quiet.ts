import type { Store } from '../receiver/store/store.ts';

/** What a command sent last may still be on its way from the kernel. */
const SETTLE_MS = 300;
/** The end of a command is held so long at most, should another program go on sending. */
const QUIET_MAX_MS = 2_000;

/** Resolves when nothing has come for a moment, or when that has taken too long. */
export function quiet(store: Store): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      unsubscribe();
      clearTimeout(settling);
      clearTimeout(limit);
      resolve();
    };
    const settling = setTimeout(done, SETTLE_MS);
    const limit = setTimeout(done, QUIET_MAX_MS);
    const unsubscribe = store.subscribe(() => void settling.refresh());
  });
}
