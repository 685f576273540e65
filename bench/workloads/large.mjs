/**
 * A call with 5 MB of input: 2,500 documents with 2 KB each. The texts exist as flat strings before the call, so the
 * loop's delay is only the cost of tracing.
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
