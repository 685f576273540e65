import { guard } from '../base/guard.ts';
import { version } from '../base/version.ts';
import type { WaitingAttachment } from '../payload/attachment.ts';
import { exactJson, type Fields, isFields, parseExact } from '../payload/fields.ts';
import { LazyPayload } from '../payload/lazy-payload.ts';
import { type EncodedPayload, jsonText } from '../payload/serialize.ts';
import { runtime } from '../platform/node.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { isRunId } from './ids.ts';
import { END_REASON, type EndReason, endReasonOf, type RunRecord } from './record.ts';
import { dottedOrder, isoTimestamp, isTimestamp, parseDottedOrder } from './time.ts';

/** A project: its name, or an object with its id. */
export type Project = string | { readonly id: string };

export function projectText(project: Project): string {
  return typeof project === 'string' ? project : project.id;
}

interface RunStart extends Readonly<Pick<EncodedRun, 'id' | 'project' | 'name' | 'runType' | 'tags' | 'metadata'>> {
  readonly startUs: number;
  readonly parent: ParentRun | undefined;
}

/** Provides the fields of an open run, for example from an OpenTelemetry span. */
export interface RunSource {
  /** Sets the fields of the open run. Called once, before the run's start is sent or stored. */
  describe(): void;
}

/**
 * A trace that a sample rate drops. Its runs are held until the first one in this process ends. Then they are passed to
 * their sinks or left out. Runs that end later follow this decision.
 */
export interface HeldTrace {
  readonly rate: number;
  readonly state: 'held' | 'kept' | 'leftOut';
  /** Called instead of the sink's `start`. Returns false if the sink refuses the run. */
  start(run: EncodedRun, sink: HeldRunSink): boolean;
  /** Called instead of the sink's `end`. */
  end(run: EncodedRun, sink: HeldRunSink): void;
}

/** The sink of a run whose trace is held. */
export interface HeldRunSink {
  start(run: EncodedRun): boolean;
  end(run: EncodedRun): void;
  /** Called for a run that is left out. */
  skip(): void;
}

interface ParentRun {
  readonly id: string | undefined;
  readonly traceId: string | undefined;
  readonly dottedOrder: string | undefined;
  readonly refused: boolean;
}

/**
 * The data of a run from its start until delivery. Payloads are encoded as JSON immediately, so later changes to a
 * value have no effect.
 *
 * If you add a field, add it to `mainText` and `parseMainJson` too.
 */
export class EncodedRun {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly parentRunId: string | undefined;
  readonly startTime: string;
  readonly project: Project;
  /**
   * Whether the sink refused the parent run. The sink also refuses all children of a refused run, so that no trace is
   * sent in part.
   */
  refused: boolean;
  /** Whether the application, or a library that it uses, has chosen the id. */
  isIdGiven = false;
  name: string;
  runType: string;
  tags: readonly string[] | undefined;
  /** Metadata values as JSON text, by key. Nested runs share this map with their parent. */
  metadata: ReadonlyMap<string, string> | undefined;
  /** JSON text of `extra.runtime`. Only the first run of a trace has this field. */
  runtime: string | undefined;
  inputs: string | undefined = undefined;
  outputs: string | undefined = undefined;
  /** Payloads of a held run that are not encoded yet. The run is passed to its sink without them, after `encodeLazy`. */
  lazy: { inputs?: LazyPayload | undefined; outputs?: LazyPayload | undefined } | undefined = undefined;
  events: string | undefined = undefined;
  error: string | undefined = undefined;
  /** Undefined while the run is open. */
  endTime: string | undefined = undefined;
  endReason: EndReason | undefined = undefined;
  referenceExampleId: string | undefined = undefined;
  attachments: WaitingAttachment[] | undefined = undefined;
  /**
   * Provides the fields of an open run. Undefined once the fields are read. Most runs never use the source, because
   * they end before their start is sent.
   */
  source: RunSource | undefined = undefined;
  /** The trace of the run, if a sample rate drops it and its runs are held. */
  held: HeldTrace | undefined = undefined;
  /** State that the sink keeps for this run. A field is faster than a map from runs to states. */
  sinkState: object | undefined = undefined;

  constructor({ id, startUs, parent, project, name, runType, tags, metadata }: RunStart) {
    this.id = id;
    this.traceId = parent?.traceId ?? id;
    this.dottedOrder = dottedOrder(parent?.dottedOrder, startUs, id);
    this.parentRunId = parent?.id;
    this.startTime = isoTimestamp(startUs);
    this.project = project;
    this.refused = parent?.refused === true;
    this.name = name;
    this.runType = runType;
    this.tags = tags;
    this.metadata = metadata;
    this.runtime = parent?.id === undefined ? runtimeJson() : undefined;
  }
}

export type PayloadTexts = Pick<EncodedRun, 'inputs' | 'outputs' | 'events'>;

let readMore: () => object = () => ({});
let encodedRuntime: string | undefined;

/**
 * Adds fields to the `extra.runtime` of root runs. Nested runs inherit metadata, but not this object. `read` is called
 * for the next root run, not here: if the import of this library loaded `node:fs`, OpenTelemetry would record the files
 * that Node loads afterwards.
 */
export function addToRuntime(read: () => object): void {
  readMore = read;
  encodedRuntime = undefined;
}

export function runtimeJson(): string {
  encodedRuntime ??= JSON.stringify({
    sdk: 'runspan',
    sdk_version: version,
    ...runtime,
    ...guard('extra.runtime', () => withoutTracing(readMore)),
  });
  return encodedRuntime;
}

/** Reads an open run's fields from its source before the run's start is sent or stored. */
export function describeOpenRun(run: EncodedRun): void {
  const { source } = run;
  if (source === undefined) return;
  run.source = undefined;
  source.describe();
}

/** Records a payload as its JSON text, or as a lazy payload. */
export function setPayload(run: EncodedRun, field: 'inputs' | 'outputs', payload: EncodedPayload): void {
  const lazy = payload instanceof LazyPayload ? payload : undefined;
  run[field] = lazy === undefined ? payload.json : undefined;
  if (lazy !== undefined || run.lazy !== undefined) run.lazy = { ...run.lazy, [field]: lazy };
}

export function encodeLazy(run: EncodedRun): void {
  const { lazy } = run;
  if (lazy === undefined) return;
  run.lazy = undefined;
  run.inputs = lazy.inputs?.json ?? run.inputs;
  run.outputs = lazy.outputs?.json ?? run.outputs;
}

/** Frees the payloads of a delivered run, because the application may keep a reference to the run. */
export function releaseRun(run: EncodedRun): void {
  run.inputs = undefined;
  run.outputs = undefined;
  run.lazy = undefined;
  run.events = undefined;
  run.error = undefined;
  run.metadata = undefined;
  run.attachments = undefined;
}

/**
 * The end with which an open run is sent. A record keeps this end if it is sent again after the run has ended: with the
 * run's own error, it would show an end without outputs.
 */
export interface EndOverride {
  readonly endTime: string;
  readonly error: string;
  readonly endReason: EndReason;
}

export function mainJson(run: EncodedRun, ended: boolean, override?: EndOverride): string {
  const metadata = run.metadata && pairsJson(run.metadata);
  const end: RunEnd = ended ? (override ?? run) : {};
  return mainText(run, end, extraJson(metadata, run.runtime, end.endReason));
}

type Started = 'id' | 'traceId' | 'parentRunId' | 'dottedOrder' | 'project' | 'name' | 'runType' | 'startTime';

/** The fields of the main part that a run without an `EncodedRun` has. */
export type MainFields = Readonly<Pick<EncodedRun, Started> & Partial<Pick<EncodedRun, 'tags' | 'referenceExampleId'>>>;

type RunEnd = Readonly<Partial<Pick<EncodedRun, 'endTime' | 'error' | 'endReason'>>>;

/** Writes the main part of a run. `extra` is the result of `extraJson`. */
export function mainText(run: MainFields, { endTime, error }: RunEnd, extra: string): string {
  let json =
    `{"id":"${run.id}","trace_id":"${run.traceId}","name":${jsonName(run.name)},"start_time":"${run.startTime}"` +
    `,"run_type":${jsonName(run.runType)},"dotted_order":"${run.dottedOrder}"`;
  if (run.parentRunId !== undefined) json += `,"parent_run_id":"${run.parentRunId}"`;
  if (typeof run.project === 'string') json += `,"session_name":${jsonName(run.project)}`;
  else json += `,"session_id":${jsonName(run.project.id)}`;
  if (endTime !== undefined) json += `,"end_time":"${endTime}"`;
  if (error !== undefined) json += `,"error":${jsonText(error)}`;
  if (run.referenceExampleId !== undefined) json += `,"reference_example_id":"${run.referenceExampleId}"`;
  if (run.tags !== undefined) json += `,"tags":[${run.tags.map(jsonText).join(',')}]`;
  return `${json}${extra}}`;
}

/** Returns a run and its payloads as JSON. Sets `outputs` to `{}` if the run ended without outputs or an error. */
export function wholeJson(run: EncodedRun): string {
  let json = `${mainJson(run, true).slice(0, -1)},"inputs":${run.inputs ?? '{}'}`;
  const outputs = run.outputs ?? (run.endTime !== undefined && run.error === undefined ? '{}' : undefined);
  if (outputs !== undefined) json += `,"outputs":${outputs}`;
  if (run.events !== undefined) json += `,"events":${run.events}`;
  return `${json}}`;
}

export function recordOf(run: EncodedRun): RunRecord {
  describeOpenRun(run);
  encodeLazy(run);
  return JSON.parse(wholeJson(run));
}

/** Whether a payload must be sent. Empty payloads are not sent (interface document, "POST /runs/multipart", rule 4). */
export function isFilled(payload: string | undefined): payload is string {
  return payload !== undefined && payload.length > 2;
}

/** Writes the `extra` field of the main part. `metadata` contains pairs of key and value, without braces. */
export function extraJson(metadata: string | undefined, runtime: string | undefined, endReason?: EndReason): string {
  let json = metadata === undefined ? '' : `"metadata":{${metadata}}`;
  if (runtime !== undefined) json += `${json && ','}"runtime":${runtime}`;
  if (endReason !== undefined) json += `${json && ','}"${END_REASON}":"${endReason}"`;
  return json && `,"extra":{${json}}`;
}

function pairsJson(metadata: ReadonlyMap<string, string>): string {
  let pairs = '';
  for (const [key, json] of metadata) pairs += `${pairs === '' ? '' : ','}${jsonName(key)}:${json}`;
  return pairs;
}

/**
 * Parses a run without payloads from JSON. Returns undefined if a field is missing or invalid. Throws if the text or
 * its `extra` field is not a JSON object.
 */
export function parseMainJson(json: string): EncodedRun | undefined {
  const main: WireFields = objectOf(parseExact(json));
  const { id, trace_id, parent_run_id, dotted_order, start_time, end_time, name, run_type, error, tags } = main;
  const project = projectOf(main);
  if (!isId(id) || !isId(trace_id) || !(parent_run_id === undefined || isId(parent_run_id))) return undefined;
  if (typeof dotted_order !== 'string' || !(end_time === undefined || isTimestamp(end_time))) return undefined;
  if (typeof name !== 'string' || typeof run_type !== 'string' || project === undefined) return undefined;
  if (!(error === undefined || typeof error === 'string') || !(tags === undefined || areTexts(tags))) return undefined;
  const { reference_example_id: example } = main;
  if (!(example === undefined || isId(example))) return undefined;
  const startUs = parseDottedOrder(dotted_order)?.at(-1)?.startUs;
  if (startUs === undefined) return undefined;
  const extra = main.extra === undefined ? {} : objectOf(main.extra);
  const { metadata, runtime } = extra;
  const above = dotted_order.slice(0, Math.max(0, dotted_order.lastIndexOf('.'))) || undefined;
  const parent = { id: parent_run_id, traceId: trace_id, dottedOrder: above, refused: false };
  const texts = metadata === undefined ? undefined : jsonTexts(objectOf(metadata));
  const run = new EncodedRun({ id, startUs, parent, project, name, runType: run_type, tags, metadata: texts });
  run.runtime = runtime === undefined ? undefined : exactJson(objectOf(runtime));
  run.referenceExampleId = example;
  run.error = error;
  run.endTime = end_time;
  run.endReason = endReasonOf({ extra });
  return run.dottedOrder === dotted_order && run.startTime === start_time ? run : undefined;
}

function projectOf({ session_id, session_name }: WireFields): Project | undefined {
  if (typeof session_id === 'string') return { id: session_id };
  return typeof session_name === 'string' ? session_name : undefined;
}

type WireFields = Partial<Record<keyof RunRecord, unknown>>;

function objectOf(value: unknown): Fields {
  if (!isFields(value)) throw new TypeError('expected an object');
  return value;
}

function jsonTexts(fields: Fields): Map<string, string> {
  return new Map(Object.entries(fields).map(([key, value]) => [key, exactJson(value)]));
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && isRunId(value);
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

const NAME_CHARACTERS_MAX = 64;
const NAMES_MAX = 1_000;

const names = new Map<string, string>();

/** Caches the JSON text of names, because most runs have one of a few names. */
export function jsonName(name: string): string {
  let json = names.get(name);
  if (json !== undefined) return json;
  json = jsonText(name);
  if (name.length > NAME_CHARACTERS_MAX) return json;
  if (names.size >= NAMES_MAX) names.clear();
  names.set(name, json);
  return json;
}
