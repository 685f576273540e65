/** 100 nested calls with 200 bytes each. A run's dotted order grows with its depth. */
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
