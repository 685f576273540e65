/** A conversation of 200 messages: 100 model calls whose input is all earlier messages. */
import { piece } from './prose.mjs';

const EXCHANGES = 100;

export const conversation = { runsPerTurn: EXCHANGES + 1, make };

function make(wrap) {
  const complete = wrap(
    async ({ messages }) => {
      await undefined;
      return { role: 'assistant', content: piece(messages.length * 13, 400) };
    },
    'complete',
    'llm',
  );
  const converse = wrap(
    async ({ topic }) => {
      const messages = [];
      for (let exchange = 0; exchange < EXCHANGES; exchange++) {
        messages.push({ role: 'user', content: `${topic} ${exchange} ${piece(exchange * 7, 100)}` });
        // Copied, so that later messages do not change it.
        messages.push(await complete({ model: 'example-model-large', messages: [...messages] }));
      }
      return { messages: messages.length };
    },
    'converse',
    'chain',
  );
  return (turn) => converse({ topic: `#${turn}` });
}
