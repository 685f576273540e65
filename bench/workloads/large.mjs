/** One call whose inputs and outputs come to 1 MB: documents of 2 KB each. */
import { piece } from './prose.mjs';

const DOCUMENTS = 256;
const DOCUMENT_CHARS = 2_000;

export const large = { runsPerTurn: 1, make };

function make(wrap) {
  const translate = wrap(
    async ({ documents }) => {
      await undefined;
      return { documents: documents.map(({ id }, at) => ({ id, content: piece(at * 17, DOCUMENT_CHARS) })) };
    },
    'translate',
    'chain',
  );
  return (turn) =>
    translate({
      documents: Array.from({ length: DOCUMENTS }, (_, at) => ({
        id: `doc-${turn}-${at}`,
        content: piece(turn + at * 31, DOCUMENT_CHARS),
      })),
    });
}
