import { setSoon } from '../../platform/timers.ts';

/** Number of items after which other requests get a turn. */
const AT_ONCE = 200;

/** Yields the items in order, and lets the event loop turn after some of them. */
export async function* inTurns<Item>(items: Iterable<Item>, atOnce: number = AT_ONCE): AsyncGenerator<Item> {
  let count = 0;
  for (const item of items) {
    yield item;
    if (++count % atOnce === 0) await new Promise<void>((resolve) => void setSoon(resolve));
  }
}
