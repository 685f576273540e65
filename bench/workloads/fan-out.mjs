/** A call that starts 1,000 concurrent calls of 200 bytes. */
import { piece } from './prose.mjs';

const CHILDREN = 1_000;

export const fanOut = { runsPerTurn: CHILDREN + 1, make };

function make(wrap) {
  const look = wrap(
    async ({ page }) => {
      await undefined;
      return { page, text: piece(page.length, 120) };
    },
    'look',
    'tool',
  );
  const gather = wrap(
    async ({ topic }) => {
      const pages = Array.from({ length: CHILDREN }, (_, at) => look({ page: `${topic} ${at}` }));
      return { pages: (await Promise.all(pages)).length };
    },
    'gather',
    'chain',
  );
  return (turn) => gather({ topic: `#${turn} ${piece(turn, 20)}` });
}
