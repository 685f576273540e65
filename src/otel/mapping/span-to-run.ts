import { reportFailure } from '../../base/guard.ts';
import { safeText } from '../../base/text.ts';
import { ATTACHMENTS_MAX, type AttachmentRoom, sizeOf } from '../../payload/attachment.ts';
import { shownError } from '../../payload/errors.ts';
import { defined, type Fields, filled, parseExact } from '../../payload/fields.ts';
import { type EncodedPayload, encodePayload, metadataJson, metadataKey, serialize } from '../../payload/serialize.ts';
import type { PayloadRules } from '../../payload/truncate.ts';
import { completeUsage, metadataOfUsage } from '../../payload/usage.ts';
import type { UsageMetadata } from '../../run/record.ts';
import { responseIdIn, USAGE } from '../../run/same-call.ts';
import type { CapturePolicy } from '../../run/sink.ts';
import { isoTimestamp } from '../../run/time.ts';
import { isCancelledCall } from '../conventions/ai-sdk.ts';
import { http } from '../conventions/protocols.ts';
import type { SpanVocabulary } from '../conventions/span-vocabulary.ts';
import { type Attributes, isEmpty, text } from '../conventions/values.ts';
import { FIRST_TOKEN, FIRST_TOKEN_AT, type Rename, SERVICE_TIER } from '../conventions/vocabulary.ts';
import type { SpanContextLike, SpanEventLike, SpanLike } from '../span-like.ts';
import { AttributeReader, type FoundPayload, type Groups } from './attributes.ts';
import {
  carriesInputs,
  carriesOutputs,
  type EventMessages,
  messagesOfEvents,
  withoutUsedEvents,
} from './message-events.ts';
import { ResourceMetadata } from './resource.ts';
import { indexWith, type RowIndex, vocabularies } from './row-index.ts';
import { isAbortedSpan, spanError } from './span-error.ts';
import { type IsHidden, spanEventsJson, withFirstToken } from './span-events.ts';
import { hrTimeUs } from './span-identity.ts';
import { openOriginJson, originJson } from './span-origin.ts';

/** The sink settings that affect the fields of a span. */
export type SpanCapture = Pick<CapturePolicy, 'hideInputs' | 'hideOutputs' | 'payload' | 'attachmentBytes'>;

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
interface SpanSurroundings {
  readonly mapping: SpanMapping;
  readonly startUs: number;
  readonly parentIds: SpanContextLike | undefined;
  /** Messages from log records, by attribute name. Span attributes take precedence. */
  readonly messages?: Attributes | undefined;
  /** Number of log records dropped because of the limits. */
  readonly droppedMessages?: number | undefined;
  readonly exception?: Attributes | undefined;
  /** JSON text of the inputs that were sent with the start of the run. */
  readonly sentInputs?: string | undefined;
  /** Whether a nested span has token counts. An agent's own token counts would repeat those of nested spans. */
  readonly hasUsageBelow?: boolean;
}

/** Run fields that are known when the span starts. */
export interface SpanStartFields {
  name: string;
  runType: string;
  inputs: EncodedPayload | undefined;
  /** The protocol of a request, whose payloads say nothing of what the application was asked, for example `http`. */
  protocol?: string;
}

export interface SpanFields extends SpanStartFields {
  outputs: EncodedPayload | undefined;
  tags: readonly string[] | undefined;
  /** Values are JSON text. */
  metadata: Map<string, string>;
  error: string | undefined;
  /** JSON text. */
  events: string | undefined;
  endTime: string;
  hasUsage: boolean;
  /** The requested model, and the id of the response or of the tool's call, as the span has them. */
  model: string | undefined;
  responseId: string | undefined;
}

export const OPERATION = 'reading a span';

/** Maximum number of metadata keys per span. Further attributes are dropped and counted in `dropped_attributes`. */
const METADATA_KEYS_MAX = 1_000;

/**
 * Maps an ended span to run fields. The same arguments always give the same fields. If part of the span is invalid, the
 * other parts are still mapped.
 */
export function spanToRun(span: SpanLike, capture: SpanCapture, around: SpanSurroundings): SpanFields {
  const fields: SpanFields = {
    name: safeText(span.name),
    runType: 'chain',
    inputs: undefined,
    outputs: undefined,
    tags: undefined,
    metadata: new Map(),
    error: undefined,
    events: undefined,
    endTime: isoTimestamp(Math.max(around.startUs, hrTimeUs(span.endTime) ?? around.startUs)),
    hasUsage: false,
    model: undefined,
    responseId: undefined,
  };
  for (const part of PARTS) {
    try {
      part(fields, span, capture, around);
    } catch (thrown) {
      reportFailure(OPERATION, thrown);
    }
  }
  return fields;
}

export function spanToOpenRun(span: SpanLike, capture: SpanCapture, index: RowIndex): SpanStartFields {
  const fields: SpanStartFields = { name: safeText(span.name), runType: 'chain', inputs: undefined };
  try {
    if (!isEmpty(span.attributes))
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
export function projectOf(attributes: Attributes): string | undefined {
  for (const { project, matches } of WITH_PROJECT) {
    const name = text(attributes[project]);
    if (name !== undefined && matches?.(attributes) !== false) return name;
  }
  return undefined;
}

const WITH_PROJECT = vocabularies.flatMap(({ project, matches }) =>
  project === undefined ? [] : [{ project, matches }],
);

/** Returns a function that checks whether an attribute or event name belongs to a hidden payload. */
export function hiddenNames(
  { hideInputs, hideOutputs }: Pick<SpanCapture, 'hideInputs' | 'hideOutputs'>,
  index: RowIndex,
): IsHidden | undefined {
  if (!hideInputs && !hideOutputs) return undefined;
  return (name) =>
    (hideInputs && (index.isPayload(name, 'inputs') || carriesInputs(name))) ||
    (hideOutputs && (index.isPayload(name, 'outputs') || carriesOutputs(name)));
}

type Part = (fields: SpanFields, span: SpanLike, capture: SpanCapture, around: SpanSurroundings) => void;

const PARTS: readonly Part[] = [mapAttributes, addResource, addOrigin, addError];

function mapAttributes(fields: SpanFields, span: SpanLike, capture: SpanCapture, around: SpanSurroundings): void {
  const { attributes, events } = span;
  const ofEvents = events.length === 0 ? undefined : messagesOfEvents(events);
  const {
    messages,
    mapping: { index },
  } = around;
  const beside = ofEvents && messages ? { ...messages, ...ofEvents.attributes } : (ofEvents?.attributes ?? messages);
  const given = beside === undefined ? attributes : { ...beside, ...defined(attributes) };
  const reader = new AttributeReader(given, index, capture.payload, around.sentInputs);
  const isAlone = around.hasUsageBelow !== true && isAgentAlone(span.kind, given);
  const {
    outputs,
    parameters,
    metadata: read,
    usage: counts,
    tags,
    times,
  } = mapStart(fields, reader, capture, isAlone);
  const metadata = read?.fields ?? {};
  fields.model = text(metadata.ls_model_name);
  fields.responseId = responseIdIn(fields.runType, metadata);
  if (parameters !== undefined) addParameters(metadata, parameters.fields);
  if (counts !== undefined) {
    const usage = completeUsage(counts.fields, metadata[SERVICE_TIER]);
    fields.hasUsage = true;
    if (metadata[USAGE] === undefined) Object.assign(metadata, metadataOfUsage(usage));
    if (!capture.hideOutputs)
      fields.outputs = encoded('outputs', withUsage(outputs, usage, capture), capture, fields.inputs);
  } else if (outputs !== undefined) {
    fields.outputs = encoded('outputs', outputs, capture, fields.inputs);
  }
  if (tags !== undefined) fields.tags = filled(tags.fields.tags as string[]);
  const isHidden = hiddenNames(capture, index);
  const shown = beside === undefined ? events : withoutUsed(span, beside, ofEvents, reader);
  addMetadata(fields.metadata, metadata, reader, capture.payload, isHidden);
  const firstTokenUs = firstTokenAfterUs(times?.fields, around.startUs, hrTimeUs(span.endTime));
  if (shown.length > 0 || firstTokenUs !== undefined) {
    const all = withFirstToken(shown, around.startUs, firstTokenUs);
    fields.events = spanEventsJson(all, around.startUs, capture.payload, isHidden);
  }
  if (around.droppedMessages) fields.metadata.set('dropped_log_records', String(around.droppedMessages));
  if (isCancelledCall(span)) fields.metadata.set('end_reason', '"cancelled"');
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
  return ofEvents === undefined ? events : withoutUsedEvents(events, ofEvents, used);
}

function addResource(
  { metadata }: SpanFields,
  { resource }: SpanLike,
  { payload }: SpanCapture,
  { mapping }: SpanSurroundings,
): void {
  for (const entry of mapping.resources.of(resource, payload)) metadata.set(entry[0], entry[1]);
}

function addOrigin(
  fields: SpanFields,
  span: SpanLike,
  { payload }: SpanCapture,
  { parentIds }: SpanSurroundings,
): void {
  try {
    fields.metadata.set('otel', originJson(span, parentIds, fields, payload));
  } catch (thrown) {
    fields.metadata.set('otel', openOriginJson(span.spanContext(), parentIds));
    throw thrown;
  }
}

function addError(fields: SpanFields, span: SpanLike, { payload }: SpanCapture, { exception }: SpanSurroundings): void {
  const error = spanError(span, exception);
  if (error === undefined) return;
  fields.error = shownError(error, payload.redaction);
  if (isAbortedSpan(span, exception)) fields.metadata.set('end_reason', '"cancelled"');
}

/** The value of `SpanKind.CLIENT`, which marks a request to another service. */
const CLIENT = 2;

/**
 * Returns whether a span describes an agent whose model calls have no spans. Agents in other services and agents
 * reported by OpenInference are assumed to have none.
 */
function isAgentAlone(kind: number, attributes: Attributes): boolean {
  if (attributes['gen_ai.operation.name'] === 'invoke_agent' && kind === CLIENT) return true;
  return text(attributes['openinference.span.kind'])?.toUpperCase() === 'AGENT';
}

function mapStart(
  fields: SpanStartFields,
  reader: AttributeReader,
  capture: SpanCapture,
  isAgentAlone: boolean,
): Groups {
  const { attributes } = reader;
  let runType: string | undefined;
  let rename: Rename | undefined;
  let nameFrom: string | undefined;
  for (const vocabulary of reader.vocabularies) {
    const kind = vocabulary.kindOf(attributes);
    runType ??= kind.runType;
    if (!capture.hideInputs) rename ??= kind.rename;
    if (nameFrom === undefined && kind.nameFrom !== undefined && text(attributes[kind.nameFrom]) !== undefined) {
      nameFrom = kind.nameFrom;
    }
  }
  fields.runType = runType ?? 'chain';
  const [first] = reader.vocabularies;
  if (first && fields.runType === 'chain' && reader.vocabularies.every(({ isProtocol }) => isProtocol))
    fields.protocol = first.name;
  const isNoRequest = NOT_REQUESTS.has(fields.runType);
  // A span that encloses model calls usually repeats the sum of their token counts.
  const isUsageRepeated = fields.runType === 'chain' && !isAgentAlone;
  const groups = reader.read((group, vocabulary) => {
    if (group === 'inputs') return capture.hideInputs || (isNoRequest && vocabulary === http);
    if (group === 'outputs') return capture.hideOutputs || (isNoRequest && vocabulary === http);
    return group === 'usage' && isUsageRepeated;
  });
  if (groups.inputs !== undefined) fields.inputs = encoded('inputs', groups.inputs, capture, undefined);
  if (nameFrom !== undefined) {
    fields.name = attributes[nameFrom] as string;
    reader.use(nameFrom);
  } else if (rename !== undefined && fields.name === rename.from) {
    fields.name = rename.to;
  }
  return groups;
}

/** Runs of these types never take their payloads from HTTP attributes. */
const NOT_REQUESTS: ReadonlySet<string> = new Set(['llm', 'embedding', 'tool']);

function encoded(
  field: 'inputs' | 'outputs',
  payload: FoundPayload,
  capture: SpanCapture,
  inputs: EncodedPayload | undefined,
): EncodedPayload {
  if (payload.text !== undefined) return { json: payload.text, attachments: undefined };
  return encodePayload(field, payload.fields, capture, inputs?.attachments && roomBeside(inputs.attachments, capture));
}

/** Returns how many attachments and bytes are left for the outputs, after the attachments in the inputs. */
function roomBeside(
  attachments: NonNullable<EncodedPayload['attachments']>,
  { attachmentBytes }: SpanCapture,
): AttachmentRoom {
  const bytes = attachments.reduce((sum, attachment) => sum + sizeOf(attachment.bytes), 0);
  return {
    bytesLeft: attachmentBytes - bytes,
    countLeft: ATTACHMENTS_MAX - attachments.length,
    isTaken: (name) => attachments.some((attachment) => attachment.name === name),
  };
}

/**
 * Adds token counts to the outputs. Extends the JSON text if possible, because encoding the outputs again is slower.
 */
function withUsage(outputs: FoundPayload | undefined, usage: UsageMetadata, { payload }: SpanCapture): FoundPayload {
  if (outputs?.text === undefined) return { fields: { ...outputs?.fields, [USAGE]: usage } };
  const body = outputs.text.trimEnd().slice(0, -1);
  if (body.trimEnd() === '{' || body.includes(USAGE))
    return { fields: { ...parseExact<Fields>(outputs.text), [USAGE]: usage } };
  return { text: `${body},"${USAGE}":${serialize(usage, payload, ['outputs', USAGE])}}` };
}

function addParameters(metadata: Fields, parameters: Fields): void {
  const { temperature, max_tokens, max_completion_tokens, stop } = parameters;
  metadata.ls_invocation_params ??= parameters;
  metadata.ls_temperature ??= temperature;
  metadata.ls_max_tokens ??= max_tokens ?? max_completion_tokens;
  metadata.ls_stop ??= stop;
}

function addMetadata(
  metadata: Map<string, string>,
  mapped: Fields,
  reader: AttributeReader,
  rules: PayloadRules,
  isHidden: IsHidden | undefined,
): void {
  const add = (key: string, value: unknown): void => {
    metadata.set(metadataKey(key, rules), metadataJson(key, value, rules));
  };
  let keys = 0;
  for (const key of Object.keys(mapped)) {
    if (mapped[key] === undefined) continue;
    keys++;
    add(key, mapped[key]);
  }
  let dropped = 0;
  reader.forRest((name, value, cleaned) => {
    if (mapped[name] !== undefined && Object.hasOwn(mapped, name)) return;
    if (isHidden?.(name) === true) return;
    if (keys++ < METADATA_KEYS_MAX) add(name, cleaned?.(value, reader.attributes) ?? value);
    else dropped++;
  });
  if (dropped > 0) metadata.set('dropped_attributes', String(dropped));
}
