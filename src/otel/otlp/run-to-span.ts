import { firstLine } from '../../base/text.ts';
import { exactJson, type Fields, fieldsOf, isFields, listOf, parsedJson, textOf } from '../../payload/fields.ts';
import { type EncodedRun, isFilled, type PayloadTexts } from '../../run/encoded-run.ts';
import { hexOf, isHex } from '../../run/ids.ts';
import type { EndReason } from '../../run/record.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import { addGenAi, isDescribed, type NewAttributes, setValue } from './gen-ai.ts';
import type { AttributeValue, OtlpAttributes, OtlpEvent, OtlpLink, OtlpSpan } from './otlp-span.ts';
import { OWN } from './own-attributes.ts';

/** The fields of a run that are known when it starts. Metadata values are JSON text. */
type RunFields = Readonly<
  Pick<EncodedRun, 'id' | 'traceId' | 'dottedOrder' | 'parentRunId' | 'name' | 'runType' | 'startTime' | 'project'> &
    Pick<EncodedRun, 'tags' | 'metadata' | 'runtime' | 'referenceExampleId'>
>;

/** What is sent of a run. Payloads are JSON text. */
export interface SentRun extends Readonly<PayloadTexts> {
  readonly run: RunFields;
  /** Undefined if the end is unknown. The span then ends when it starts. */
  readonly endTime: string | undefined;
  readonly error: string | undefined;
  readonly endReason: EndReason | undefined;
  /** Whether the run had not ended when it was sent. */
  readonly isIncomplete: boolean;
  /** The fields of `extra` besides metadata and runtime, as JSON text. */
  readonly extra?: string | undefined;
  readonly evaluations?: readonly OtlpEvent[];
}

/** The names of span kinds in the metadata of runs that were spans, in the order of OTLP's numbers. */
const KINDS: readonly unknown[] = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];

const INTERNAL = 1;
const CLIENT = 3;

/** Run types that stand for a request to a service. */
const REQUESTS: ReadonlySet<string> = new Set(['llm', 'embedding', 'retriever']);

const OK = 1;
const ERROR = 2;

/** Maximum length of a status message, which is the first line of the error. */
const MESSAGE_CHARACTERS_MAX = 1_000;

/** Returns what the metadata of a run says about its OpenTelemetry span, or the span above it. */
export function originOf({ metadata }: Pick<RunFields, 'metadata'>): Fields {
  return fieldsOf(parsedJson(metadata?.get('otel')));
}

/**
 * Converts a run to a span. The trace id consists of the digits of the run's `trace_id`, and the span id of the last 16
 * digits of the run id. A run that was a span, or that is below one, keeps the ids of OpenTelemetry.
 */
export function spanOfRun(sent: SentRun, origin: Fields = originOf(sent.run)): OtlpSpan {
  const { run, endTime, error } = sent;
  const startUs = parseIsoTimestamp(run.startTime) ?? 0;
  const endUs = Math.max(startUs, (endTime === undefined ? undefined : parseIsoTimestamp(endTime)) ?? startUs);
  const events = [...eventsOf(sent.events, startUs), ...(sent.evaluations ?? [])];
  const attributes = attributesOf(sent, origin);
  const isError = error !== undefined && error !== '';
  if (isError && events.some(({ name }) => name === 'exception')) attributes.set(OWN.error, error);
  else if (isError) events.push(errorEvent(error, endUs));
  // Removes the error with which the run was sent as incomplete.
  else if (error === '') attributes.set(OWN.error, '');
  return {
    traceId: hexIn(origin.root_trace_id, 32) ?? hexIn(origin.trace_id, 32) ?? hexOf(run.traceId),
    spanId: hexIn(origin.span_id, 16) ?? spanIdOf(run.id),
    parentSpanId: parentSpanIdOf(run, hexIn(origin.parent_span_id, 16), hexIn(origin.enclosing_span_id, 16)),
    name: textOf(origin.name) ?? run.name,
    kind: Math.max(KINDS.indexOf(origin.kind), REQUESTS.has(run.runType) ? CLIENT : INTERNAL),
    startUs,
    endUs,
    attributes,
    events,
    links: listOf(origin.links).flatMap(linkOf),
    statusCode: isError ? ERROR : origin.status === 'OK' ? OK : 0,
    statusMessage: isError ? firstLine(error).slice(0, MESSAGE_CHARACTERS_MAX) : '',
  };
}

function spanIdOf(runId: string): string {
  return hexOf(runId.slice(19));
}

function hexIn(value: unknown, digits: number): string | undefined {
  return typeof value === 'string' && isHex(value, digits) ? value : undefined;
}

/** The parent of a run is one of two spans if its id contains the digits of the span id, see `spanRunId`. */
function parentSpanIdOf({ parentRunId }: RunFields, parentId?: string, enclosingId?: string): string | undefined {
  if (parentRunId === undefined) return parentId;
  const digits = parentRunId.slice(15, 18) + parentRunId.slice(22).replace('-', '');
  return digits === parentId || digits === enclosingId ? digits : spanIdOf(parentRunId);
}

function attributesOf(sent: SentRun, origin: Fields): NewAttributes {
  const { run, isIncomplete, endReason } = sent;
  const { metadata, tags, name, runType } = run;
  const attributes: NewAttributes = new Map<string, AttributeValue>([
    [OWN.runType, runType],
    [OWN.order, run.dottedOrder],
  ]);
  const inputs = isFilled(sent.inputs) ? sent.inputs : undefined;
  const outputs = isFilled(sent.outputs) ? sent.outputs : undefined;
  if (inputs !== undefined) attributes.set('input.value', inputs).set('input.mime_type', 'application/json');
  if (outputs !== undefined) attributes.set('output.value', outputs).set('output.mime_type', 'application/json');
  if (tags !== undefined) attributes.set('tag.tags', tags);
  if (metadata !== undefined) addMetadata(attributes, metadata);
  addGenAi(attributes, { name, runType, metadata, inputs, outputs });
  if (textOf(origin.name) !== undefined) attributes.set(OWN.name, name);
  if (typeof run.project !== 'string') attributes.set(OWN.projectId, run.project.id);
  if (run.referenceExampleId !== undefined) attributes.set(OWN.example, run.referenceExampleId);
  if (run.runtime !== undefined) attributes.set(OWN.runtime, run.runtime);
  if (sent.extra !== undefined) attributes.set(OWN.extra, sent.extra);
  if (isIncomplete) attributes.set(OWN.incomplete, true);
  if (endReason !== undefined) attributes.set(OWN.endReason, endReason);
  return attributes;
}

/** Adds the metadata as JSON text, as OpenInference does, and each plain value as an attribute of its own. */
function addMetadata(attributes: NewAttributes, metadata: ReadonlyMap<string, string>): void {
  let all = '{';
  for (const [key, json] of metadata) {
    all += `${all === '{' ? '' : ','}${JSON.stringify(key)}:${json}`;
    if (!/^[[{]/.test(json) && !isDescribed(key) && !RESERVED.test(key)) setValue(attributes, key, parsedJson(json));
  }
  attributes.set('metadata', `${all}}`);
}

/** Matches the attributes that contain other fields of the run. */
const RESERVED = /^(runspan\.|(input|output)\.(value|mime_type)$|tag\.tags$|metadata$)/;

function eventsOf(json: string | undefined, startUs: number): OtlpEvent[] {
  return listOf(parsedJson(json)).map((event) => {
    const { name, time, kwargs } = fieldsOf(event);
    return {
      name: textOf(name) ?? 'event',
      timeUs: parseIsoTimestamp(textOf(time) ?? '') ?? startUs,
      attributes: eventAttributes(kwargs),
    };
  });
}

function eventAttributes(kwargs: unknown): OtlpAttributes {
  if (!isFields(kwargs)) return new Map();
  const attributes = attributesOfFields(kwargs);
  const values = Object.values(kwargs);
  const isWhole = values.length > 0 && values.every((value) => typeof value !== 'object');
  return isWhole ? attributes : attributes.set(OWN.kwargs, exactJson(kwargs));
}

export function attributesOfFields(fields: Fields): NewAttributes {
  const attributes: NewAttributes = new Map();
  for (const [key, value] of Object.entries(fields)) setValue(attributes, key, value);
  return attributes;
}

/** Matches the name in front of an error's message: `TypeError: x is not a function`. */
const ERROR_NAME = /^([\w$.]{1,200}): /;

export function errorNameIn(error: string): string | undefined {
  return ERROR_NAME.exec(error)?.[1];
}

function errorEvent(error: string, timeUs: number): OtlpEvent {
  const line = firstLine(error).slice(0, MESSAGE_CHARACTERS_MAX);
  const name = errorNameIn(line);
  const attributes: NewAttributes = new Map<string, AttributeValue>([
    ['exception.type', name ?? 'Error'],
    ['exception.message', name === undefined ? line : line.slice(name.length + 2)],
    ['exception.stacktrace', error],
    [OWN.error, true],
  ]);
  return { name: 'exception', timeUs, attributes };
}

function linkOf(link: unknown): OtlpLink[] {
  const { trace_id, span_id, attributes } = fieldsOf(link);
  const [traceId, spanId] = [hexIn(trace_id, 32), hexIn(span_id, 16)];
  if (traceId === undefined || spanId === undefined) return [];
  return [{ traceId, spanId, attributes: attributesOfFields(fieldsOf(attributes)) }];
}
