import { setSoon } from '../../platform/timers.ts';

/** Time after which other requests get a turn, in milliseconds. */
const TURN_MS = 10;
/** When `takeTurn` was first called in this turn of the event loop. */
let beganMs: number | undefined;

/** Lets the event loop turn if its turn takes longer than `TURN_MS`. Small requests thus keep their order. */
export async function takeTurn(): Promise<void> {
  if (beganMs === undefined) {
    beganMs = performance.now();
    setSoon(() => {
      beganMs = undefined;
    });
  } else if (performance.now() - beganMs >= TURN_MS) await new Promise<void>((resolve) => void setSoon(resolve));
}

/** Yields the items in order, and lets the event loop turn between them. */
export async function* inTurns<Item>(items: Iterable<Item>): AsyncGenerator<Item> {
  for (const item of items) {
    yield item;
    await takeTurn();
  }
}

/** Converts the items in order, and lets the event loop turn between them. */
export async function mapInTurns<Item, To>(items: Iterable<Item>, convert: (item: Item) => To): Promise<To[]> {
  const results: To[] = [];
  for await (const item of inTurns(items)) results.push(convert(item));
  return results;
}
