/** A hundred calls, each within the one before, of 200 bytes each: the place of a run in its trace is as long as the way to it. */
import { piece } from './prose.mjs';

const DEPTH = 100;

export const nested = { runsPerTurn: DEPTH, make };

function make(wrap) {
  const step = wrap(
    async ({ task, depth }) => {
      const below = depth < DEPTH ? (await step({ task, depth: depth + 1 })).below + 1 : 0;
      await undefined;
      return { below, note: piece(depth, 90) };
    },
    'step',
    'chain',
  );
  return (turn) => step({ task: `#${turn} ${piece(turn, 40)}`, depth: 1 });
}
