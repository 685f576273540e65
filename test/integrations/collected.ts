import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Waits until an object has been collected, and whoever asked to be told has been. */
export async function collected(dropped: WeakRef<object>): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  do {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  } while (dropped.deref() !== undefined);
  // Finalizers have tasks of their own.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
