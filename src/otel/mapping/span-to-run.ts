import { reportFailure } from '../../base/guard.ts';
import { shownError } from '../../payload/errors.ts';
import { defined, type Fields, filled } from '../../payload/fields.ts';
import { metadataJson, metadataKey } from '../../payload/serialize.ts';
import type { EndReason } from '../../run/record.ts';
import { isCancelledCall } from '../conventions/ai-sdk.ts';
import type { SpanVocabulary } from '../conventions/span-vocabulary.ts';
import { type Attributes, hasNoFields, text } from '../conventions/values.ts';
import { FIRST_TOKEN, FIRST_TOKEN_AT } from '../conventions/vocabulary.ts';
import type { SpanContextLike, SpanEventLike, SpanLike } from '../span-like.ts';
import { AttributeReader } from './attributes.ts';
import { hiddenContent } from './hidden-content.ts';
import { forMetadata, MappedFields, mapEnd, mapStart, type SpanCapture, StartFields } from './mapped-fields.ts';
import { type EventMessages, messagesOfEvents, type SpanLogs } from './message-events.ts';
import { ResourceMetadata } from './resource.ts';
import { indexWith, type RowIndex, vocabularies } from './row-index.ts';
import { isAbortedSpan, spanError } from './span-error.ts';
import { spanEventsJson, withFirstToken } from './span-events.ts';
import { hrTimeUs } from './span-identity.ts';
import { openOriginJson, originJson } from './span-origin.ts';

/** The attributes of spans and of resources that become fields of runs. */
export interface SpanMapping {
  readonly index: RowIndex;
  readonly resources: ResourceMetadata;
}

/** Returns the mapping with vocabularies of one's own and the names of resource attributes. `environment` adds to a resource. */
export function mappingWith(
  own?: readonly SpanVocabulary[],
  resource?: readonly string[],
  environment?: () => Attributes,
): SpanMapping {
  return { index: indexWith(own), resources: new ResourceMetadata(resource, environment) };
}

export const DEFAULT_MAPPING: SpanMapping = mappingWith();

/** Data that is needed to map a span but is not part of the span. */
export interface SpanSurroundings {
  readonly mapping: SpanMapping;
  readonly startUs: number;
  readonly parentIds: SpanContextLike | undefined;
  /** What log records say of the span. Span attributes take precedence over messages. */
  readonly logs?: SpanLogs | undefined;
  /** JSON text of the inputs that were sent with the start of the run. */
  readonly sentInputs?: string | undefined;
  /** Whether a nested span has token counts. An agent's own token counts would repeat those of nested spans. */
  readonly hasUsageBelow?: boolean;
}

export class SpanFields extends MappedFields {
  tags: readonly string[] | undefined = undefined;
  /** Values are JSON text. */
  readonly metadata: Map<string, string> = new Map();
  error: string | undefined = undefined;
  endReason: EndReason | undefined = undefined;
  /** JSON text. */
  events: string | undefined = undefined;
}

export const OPERATION = 'reading a span';

/** Maps an ended span, with equal fields for equal arguments. If one part is invalid, the others are mapped. */
export function spanToRun(span: SpanLike, capture: SpanCapture, around: SpanSurroundings): SpanFields {
  const fields = new SpanFields(span, around.startUs, hiddenContent(capture, around.mapping.index));
  for (const part of PARTS) {
    try {
      part(fields, span, capture, around);
    } catch (thrown) {
      reportFailure(OPERATION, thrown);
    }
  }
  return fields;
}

export function spanToOpenRun(span: SpanLike, capture: SpanCapture, index: RowIndex): StartFields {
  const fields = new StartFields(span);
  try {
    if (!hasNoFields(span.attributes))
      mapStart(fields, new AttributeReader(span.attributes, index, capture.payload), capture, false);
  } catch (thrown) {
    reportFailure(OPERATION, thrown);
  }
  return fields;
}

/** Returns the run type of a span without reading its attributes into fields. */
export function runTypeOf(attributes: Attributes, index: RowIndex): string {
  let candidates = 0;
  for (const name in attributes) if (attributes[name] !== undefined) candidates |= index.factsOf(name).candidates;
  for (const vocabulary of index.vocabulariesOf(index.matchedBits(candidates, attributes))) {
    const { runType } = vocabulary.kindOf(attributes);
    if (runType !== undefined) return runType;
  }
  return 'chain';
}

/** Returns the project that a span names. Called when the span starts, because a run's project cannot change later. */
export function projectInAttributes(attributes: Attributes): string | undefined {
  for (const { project, matches } of WITH_PROJECT) {
    const name = text(attributes[project]);
    if (name !== undefined && matches?.(attributes) !== false) return name;
  }
  return undefined;
}

const WITH_PROJECT = vocabularies.flatMap(({ project, matches }) =>
  project === undefined ? [] : [{ project, matches }],
);

type Part = (fields: SpanFields, span: SpanLike, capture: SpanCapture, around: SpanSurroundings) => void;

const PARTS: readonly Part[] = [mapAttributes, addResource, addOrigin, addError];

function mapAttributes(fields: SpanFields, span: SpanLike, capture: SpanCapture, around: SpanSurroundings): void {
  const { attributes, events } = span;
  const ofEvents = events.length === 0 ? undefined : messagesOfEvents(events);
  const { logs, mapping } = around;
  const { index } = mapping;
  const messages = logs?.attributes;
  const beside = ofEvents && messages ? { ...messages, ...ofEvents.attributes } : (ofEvents?.attributes ?? messages);
  const given = beside === undefined ? attributes : { ...beside, ...defined(attributes) };
  const reader = new AttributeReader(given, index, capture.payload, around.sentInputs);
  const { metadata, tags, times } = mapEnd(fields, reader, span.kind, capture, around.hasUsageBelow);
  if (tags !== undefined) fields.tags = filled(tags.fields.tags as string[]);
  const shown = beside === undefined ? events : withoutUsed(span, beside, ofEvents, reader);
  const dropped = forMetadata(metadata.fields, reader, fields.hidden, (key, value) => {
    fields.metadata.set(metadataKey(key, capture.payload), metadataJson(key, value, capture.payload));
  });
  if (dropped > 0) fields.metadata.set('dropped_attributes', String(dropped));
  const firstTokenUs = firstTokenAfterUs(times?.fields, around.startUs, hrTimeUs(span.endTime));
  if (shown.length > 0 || firstTokenUs !== undefined) {
    const all = withFirstToken(shown, around.startUs, firstTokenUs);
    fields.events = spanEventsJson(all, around.startUs, capture.payload, fields.hidden);
  }
  if (logs !== undefined && logs.leftOut > 0) fields.metadata.set('dropped_log_records', String(logs.leftOut));
  if (isCancelledCall(span)) fields.endReason = 'cancelled';
}

/** Returns the microseconds from the start of a span to its first token. Ignores a time outside the span. */
function firstTokenAfterUs(times: Fields | undefined, startUs: number, endUs = startUs): number | undefined {
  const { [FIRST_TOKEN]: afterUs, [FIRST_TOKEN_AT]: atUs } = (times ?? {}) as Record<string, number | undefined>;
  return afterUs ?? (atUs !== undefined && atUs >= startUs && atUs <= endUs ? atUs - startUs : undefined);
}

/** Removes events if the inputs or outputs contain their messages. `beside` contains the messages by attribute name. */
function withoutUsed(
  { attributes, events }: SpanLike,
  beside: Attributes,
  ofEvents: EventMessages | undefined,
  reader: AttributeReader,
): readonly SpanEventLike[] {
  const own = Object.keys(beside).filter((name) => !Object.hasOwn(attributes, name));
  const used = new Set(own.filter((name) => reader.isUsed(name)));
  // Messages that no table uses must not become metadata, because they are not span attributes. Events with such
  // messages are recorded unchanged.
  for (const name of own) reader.use(name);
  return events.filter((event) => ofEvents?.sources.get(event)?.every((name) => used.has(name)) !== true);
}

function addResource(fields: SpanFields, span: SpanLike, capture: SpanCapture, around: SpanSurroundings): void {
  const entries = around.mapping.resources.of(span.resource, capture.payload, fields.hidden);
  for (const [key, json] of entries) fields.metadata.set(key, json);
}

function addOrigin(fields: SpanFields, span: SpanLike, capture: SpanCapture, around: SpanSurroundings): void {
  try {
    const json = originJson(span, around.parentIds, fields, capture.payload);
    fields.hidden?.addCount(fields.metadata);
    fields.metadata.set('otel', json);
  } catch (thrown) {
    fields.metadata.set('otel', openOriginJson(span.spanContext(), around.parentIds));
    throw thrown;
  }
}

function addError(fields: SpanFields, span: SpanLike, { payload }: SpanCapture, { logs }: SpanSurroundings): void {
  const exception = logs?.exception;
  const error = spanError(span, exception);
  if (error === undefined) return;
  fields.error = shownError(error, payload.redaction);
  if (isAbortedSpan(span, exception)) fields.endReason = 'cancelled';
}
