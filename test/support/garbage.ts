import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const turn = () => new Promise(setImmediate);

/** Collects until something holds: finalizers are called by the engine when it has time for them. */
export async function collectUntil(holds: () => boolean, rounds = 200): Promise<void> {
  for (let round = 0; round < rounds && !holds(); round++) {
    await turn();
    collectGarbage();
  }
}
