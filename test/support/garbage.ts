import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects unreachable objects. Finalizers are called in a later turn of the event loop. */
export const collectGarbage = runInNewContext('gc') as () => void;

const turn = () => new Promise(setImmediate);

/** Collects until the condition is true, because the engine does not call finalizers immediately. */
export async function collectUntil(holds: () => boolean, rounds = 200): Promise<void> {
  for (let round = 0; round < rounds && !holds(); round++) {
    await turn();
    collectGarbage();
  }
}

/** Collects everything that is unreachable, and calls the finalizers. */
export async function collectAll(): Promise<void> {
  // A finalizer of the first round may drop the last reference to an object.
  for (let round = 0; round < 2; round++) await collected(new WeakRef({}));
}

/** Waits until an object has been collected and its finalizers have been called. */
export async function collected(dropped: WeakRef<object>): Promise<void> {
  do {
    await turn();
    collectGarbage();
  } while (dropped.deref() !== undefined);
  for (let turns = 0; turns < 3; turns++) await turn();
}
