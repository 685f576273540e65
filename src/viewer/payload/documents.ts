import { type Fields, fieldsOf, firstText, isFields, numberOf } from '../../payload/fields.ts';

export interface FoundDocument {
  readonly title?: string | undefined;
  readonly text: string;
  readonly score?: number | undefined;
  readonly metadata?: Fields | undefined;
}

/** Returns the documents in the outputs of a retriever. Returns undefined if the outputs contain no list of texts. */
export function documentsOf(outputs: unknown): FoundDocument[] | undefined {
  const list = listIn(outputs, 2);
  const found = list?.map(documentOf);
  return found?.every((one) => one !== undefined) ? found : undefined;
}

function listIn(value: unknown, depth: number): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value.length === 0 || documentOf(value[0]) !== undefined ? value : undefined;
  if (depth === 0 || !isFields(value)) return undefined;
  const { documents, output, outputs, results, matches, docs, chunks } = value;
  const candidates = [documents, output, outputs, results, matches, docs, chunks];
  for (const candidate of candidates) {
    const list = candidate === undefined ? undefined : listIn(candidate, depth - 1);
    if (list !== undefined) return list;
  }
  return undefined;
}

function documentOf(value: unknown): FoundDocument | undefined {
  if (typeof value === 'string') return { text: value };
  // Some vector stores return each document as a pair of the document and its score.
  if (Array.isArray(value) && value.length === 2 && numberOf(value[1]) !== undefined) {
    const first = documentOf(value[0]);
    return first === undefined ? undefined : { ...first, score: numberOf(value[1]) };
  }
  const fields = fieldsOf(value);
  const inner = isFields(fields.document) ? fields.document : fields;
  const text = [inner.page_content, inner.pageContent, inner.text, inner.content, inner.snippet, inner.body]
    .concat(fieldsOf(inner.metadata).text)
    .find((one) => typeof one === 'string') as string | undefined;
  if (text === undefined) return undefined;
  const metadata = isFields(inner.metadata) ? inner.metadata : undefined;
  const title = firstText(inner.title, metadata?.title, metadata?.source, inner.source, inner.url, inner.id);
  const score = [fields.score, fields.similarity, metadata?.score, metadata?.relevance_score]
    .map(numberOf)
    .find((one) => one !== undefined);
  return { text, title, score, metadata };
}
