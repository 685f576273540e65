import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects what nothing holds on to. Finalizers are called in a later turn of the event loop. */
export const collectGarbage = runInNewContext('gc') as () => void;

const turn = () => new Promise(setImmediate);

/** Collects until something holds: finalizers are called by the engine when it has time for them. */
export async function collectUntil(holds: () => boolean, rounds = 200): Promise<void> {
  for (let round = 0; round < rounds && !holds(); round++) {
    await turn();
    collectGarbage();
  }
}

/** Waits until an object has been collected, and whoever asked to be told has been. */
export async function collected(dropped: WeakRef<object>): Promise<void> {
  do {
    await turn();
    collectGarbage();
  } while (dropped.deref() !== undefined);
  for (let turns = 0; turns < 3; turns++) await turn();
}
