/** A call that fails because an inner call fails, with two errors. */
import { piece } from './prose.mjs';

export const errors = { runsPerTurn: 2, make };

function make(wrap) {
  const fetchPage = wrap(
    async ({ url }) => {
      await undefined;
      throw new Error(`${url} answered 503`);
    },
    'fetch-page',
    'tool',
  );
  const research = wrap(
    async ({ question }) => {
      try {
        return await fetchPage({ url: `/pages/${question.length}?q=${question}` });
      } catch (cause) {
        throw new Error('no page could be read', { cause });
      }
    },
    'research',
    'chain',
  );
  return (turn) => research({ question: `#${turn} ${piece(turn, 160)}` }).catch(({ message }) => message);
}
