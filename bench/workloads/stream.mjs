/** An answer that streams in 5,000 chunks. */
import { piece } from './prose.mjs';

const CHUNKS = 5_000;

export const stream = streamOf(CHUNKS);

export function streamOf(chunks) {
  const make = (wrap) => {
    const generate = wrap(
      async function* ({ prompt }) {
        for (let at = 0; at < chunks; at++) yield { index: at, delta: piece(prompt.length + at, 12) };
      },
      'generate',
      'llm',
    );
    return async (turn) => {
      let chars = 0;
      for await (const { delta } of generate({ prompt: `#${turn} ${piece(turn, 200)}` })) chars += delta.length;
      return chars;
    };
  };
  return { runsPerTurn: 1, make };
}

/** Whether a function of a workload streams its answer. */
export function isStream(fn) {
  return fn.constructor.name === 'AsyncGeneratorFunction';
}
