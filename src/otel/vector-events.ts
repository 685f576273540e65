import type { SpanEventLike, SpanLike } from './span-like.ts';
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

/** The attributes of a span, and its events. */
export interface SpanContent {
  readonly attributes: Attributes;
  readonly events: readonly SpanEventLike[];
}

/**
 * A span with the events of vector databases turned into attributes: each kind a list, under the name of the event.
 * Vectors are told by their length alone.
 */
export function withVectorEvents(span: Pick<SpanLike, 'attributes' | 'events'>): SpanContent {
  const told: Fields = {};
  const events = span.events.filter((event) => {
    const values = attributesOfVectorEvent(event);
    for (const name in values) {
      const before = told[name];
      const value = values[name];
      if (Array.isArray(before) && Array.isArray(value)) before.push(...value);
      else told[name] = value;
    }
    return values === undefined;
  });
  return events.length === span.events.length ? span : { attributes: { ...span.attributes, ...told }, events };
}

/**
 * What one event tells, under the name of the attribute that would tell it: lists of one, to be put together. Undefined for
 * an event of any other name.
 */
function attributesOfVectorEvent({ name, attributes = {} }: SpanEventLike): Fields | undefined {
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
