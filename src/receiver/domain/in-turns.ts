import { setSoon } from '../../platform/timers.ts';

/** Time after which other requests get a turn, in milliseconds. */
const TURN_MS = 10;
let turnAtMs = 0;

/** Lets the event loop turn if the last call that did so was `TURN_MS` ago. */
export async function takeTurn(): Promise<void> {
  if (performance.now() - turnAtMs < TURN_MS) return;
  await new Promise<void>((resolve) => void setSoon(resolve));
  turnAtMs = performance.now();
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
