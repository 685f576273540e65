/** A model call that takes 2 s: six messages and an answer, 4 KB together. Many of them are open at the same time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { piece } from './prose.mjs';

const CALL_MS = 2_000;
const MESSAGES = 6;

export const modelCall = { runsPerTurn: 1, make };

function make(wrap) {
  const complete = wrap(
    async ({ messages }) => {
      await sleep(CALL_MS);
      return {
        role: 'assistant',
        content: piece(messages[0].content.length * 13, 1_120),
        finish_reason: 'stop',
        usage: { input_tokens: 700, output_tokens: 240 },
      };
    },
    'complete',
    'llm',
  );
  return (turn) =>
    complete({
      model: 'example-model-large',
      temperature: 0.2,
      messages: Array.from({ length: MESSAGES }, (_, at) => ({
        role: at % 2 === 0 ? 'user' : 'assistant',
        content: `#${turn}/${at} ${piece(turn * 7 + at * 131, 480)}`,
      })),
    });
}
