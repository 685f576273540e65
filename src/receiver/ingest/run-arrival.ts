import { clearTimer, setTimer } from '../../base/timers.ts';
import type { Store } from '../store/store.ts';

/** Clients send runs in batches, some a quarter of a second apart. */
const ARRIVAL_MS = 1_000;

/**
 * Does what needs a run that may not have come yet: at once, and then with each change of the store until it is done or a second has
 * passed. Whether it was done.
 */
export async function onceRunIsHere(store: Store, act: () => Promise<boolean>): Promise<boolean> {
  let changed = (): void => {};
  let isOver = false;
  const unsubscribe = store.subscribe(() => changed());
  const timer = setTimer(() => {
    isOver = true;
    changed();
  }, ARRIVAL_MS);
  try {
    for (;;) {
      // Before the act, so that no change during it is missed.
      const change = new Promise<void>((resolve) => {
        changed = resolve;
      });
      if (await act()) return true;
      if (isOver) return false;
      await change;
    }
  } finally {
    clearTimer(timer);
    unsubscribe();
  }
}
