/** Turns of an agent, small calls, errors and streams, in one program. */
import { agent } from './agent.mjs';
import { errors } from './errors.mjs';
import { streamOf } from './stream.mjs';
import { tiny } from './tiny.mjs';

const PARTS = [agent, tiny, errors, streamOf(50), agent];

export const mixed = { runsPerTurn: PARTS.reduce((sum, { runsPerTurn }) => sum + runsPerTurn, 0), make };

function make(wrap) {
  const parts = PARTS.map((part) => part.make(wrap));
  return async (turn) => {
    for (const part of parts) await part(turn);
  };
}
