/**
 * A call with an input of 5 MB: 2 500 documents of 2 KB. The texts exist before the call, as flat strings: the loop's delay is then
 * the cost of tracing, as the program itself does nothing.
 */
import { piece } from './prose.mjs';

const DOCUMENTS = 2_500;
const DOCUMENT_CHARS = 2_000;

export const large = { runsPerTurn: 1, make };

function make(wrap) {
  const documents = Array.from({ length: DOCUMENTS }, (_, at) => ({
    id: `doc-${at}`,
    content: Buffer.from(piece(at * 31, DOCUMENT_CHARS)).toString('latin1'),
  }));
  const index = wrap(async ({ batch, documents: given }) => ({ batch, documents: given.length }), 'index', 'chain');
  return (turn) => index({ batch: turn, documents });
}
