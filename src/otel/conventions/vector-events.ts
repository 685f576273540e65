import { dimensionsOf } from './traceloop-messages.ts';
import { type Attributes, defined, type Fields } from './values.ts';

/** Events that stand for one vector each: of what is searched for, and of what is found. */
const VECTORS: ReadonlySet<string> = new Set([
  'db.query.embeddings',
  'db.query.result',
  'db.search.embeddings',
  'db.search.result',
]);

/** Pinecone's metadata come as an event, what they belong to as attributes. */
const MATCH_METADATA = /^pinecone\.query\.result\.(\d+)\.metadata$/;

/**
 * What one event of a vector database tells, under the name of the attribute that would tell it: lists of one, to be put
 * together. Undefined for an event of any other name. Vectors are told by their length alone.
 */
export function attributesOfVectorEvent(name: string, attributes: Attributes): Fields | undefined {
  if (VECTORS.has(name)) return { [name]: [vectorOf(name, attributes)] };
  const place = name.startsWith('pinecone.') ? MATCH_METADATA.exec(name)?.[1] : undefined;
  return place === undefined ? undefined : { [`db.vector.query.result.${place}.metadata`]: attributes };
}

function vectorOf(name: string, attributes: Attributes): Fields {
  const entries = Object.entries(attributes).map(([key, value]) => [
    key.startsWith(`${name}.`) ? key.slice(name.length + 1) : key,
    value,
  ]);
  const { vector, ...rest } = Object.fromEntries(entries) as Fields;
  return defined({ ...rest, dimensions: dimensionsOf(vector) });
}
