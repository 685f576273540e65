import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects what nothing holds on to. Finalizers are called in a later turn of the event loop. */
export const collectGarbage = runInNewContext('gc') as () => void;

/** Waits until an object has been collected, and whoever asked to be told has been. */
export async function collected(dropped: WeakRef<object>): Promise<void> {
  do {
    await new Promise(setImmediate);
    collectGarbage();
  } while (dropped.deref() !== undefined);
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
}
