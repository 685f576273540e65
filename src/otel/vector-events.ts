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
  const { attributes, events } = span;
  if (!events.some(isVectorEvent)) return span;
  const told: Fields = {};
  for (const event of events) if (isVectorEvent(event)) tell(told, event);
  return { attributes: { ...attributes, ...told }, events: events.filter((event) => !isVectorEvent(event)) };
}

function isVectorEvent({ name }: SpanEventLike): boolean {
  return VECTORS.has(name) || (name.startsWith('pinecone.') && MATCH_METADATA.test(name));
}

function tell(told: Fields, { name, attributes = {} }: SpanEventLike): void {
  const place = MATCH_METADATA.exec(name)?.[1];
  if (place !== undefined) {
    told[`db.vector.query.result.${place}.metadata`] = attributes;
    return;
  }
  const entries = Object.entries(attributes).map(([key, value]) => [
    key.startsWith(`${name}.`) ? key.slice(name.length + 1) : key,
    value,
  ]);
  const { vector, ...rest } = Object.fromEntries(entries) as Fields;
  const list = (told[name] ?? []) as Fields[];
  list.push(defined({ ...rest, dimensions: dimensionsOf(vector) }));
  told[name] = list;
}
