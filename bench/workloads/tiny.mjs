/** Five calls of 200 bytes each. */
import { piece } from './prose.mjs';

const TOOLS = 4;

export const tiny = { runsPerTurn: TOOLS + 1, make };

function make(wrap) {
  const tool = wrap(async ({ key }) => ({ value: piece(key.length, 120), ok: true }), 'tool', 'tool');
  const plan = wrap(
    async ({ task }) => {
      let found = 0;
      for (let step = 0; step < TOOLS; step++) found += (await tool({ key: `${task} ${step}` })).value.length;
      return { found, note: piece(found, 80) };
    },
    'plan',
    'chain',
  );
  return (turn) => plan({ task: `#${turn} ${piece(turn, 30)}` });
}
