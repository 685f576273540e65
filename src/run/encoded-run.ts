import type { HeldAttachment } from '../payload/attachment.ts';
import { jsonText } from '../payload/serialize.ts';
import { runtimeJson } from './runtime.ts';

/** A project, identified by its name or its id. Only one of the two is sent. */
export type Project = string | { readonly id: string };

/** Returns the name or the id of a project. */
export function projectText(project: Project): string {
  return typeof project === 'string' ? project : project.id;
}

/**
 * A run on its way from the call to the wire. Payloads are JSON text already, made when they were passed, so that a
 * later mutation changes nothing and nothing of the application is held on to. One object serves a run from start to
 * end: `Run` fills in the fields of the end, and the sink may release payloads that it has delivered.
 */
export interface EncodedRun {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly parentRunId: string | undefined;
  /** ISO 8601, UTC, microseconds; as is `endTime`. */
  readonly startTime: string;
  readonly project: Project;
  /** Its parent was refused by the sink, so it has to be refused too: a trace is kept whole or not at all. */
  readonly refused: boolean;
  name: string;
  runType: string;
  tags: readonly string[] | undefined;
  /** Metadata key → JSON text. Runs below may share it. */
  metadata: ReadonlyMap<string, string> | undefined;
  /** JSON text of `extra.runtime`; only the first run of a trace in this process carries it. */
  runtime: string | undefined;
  inputs: string | undefined;
  outputs: string | undefined;
  events: string | undefined;
  error: string | undefined;
  /** Undefined while the run is open. */
  endTime: string | undefined;
  attachments: HeldAttachment[] | undefined;
}

/** Who a run is, from its start on. */
export type RunIdentity = Pick<
  EncodedRun,
  | 'id'
  | 'traceId'
  | 'dottedOrder'
  | 'parentRunId'
  | 'startTime'
  | 'project'
  | 'refused'
  | 'name'
  | 'runType'
  | 'tags'
  | 'metadata'
>;

/**
 * The record of a run that starts. Every field is named: an object that is spread into such a literal has no fixed shape for
 * the engine, and each run would cost twice as much.
 */
export function newRecord(identity: RunIdentity): EncodedRun {
  return {
    id: identity.id,
    traceId: identity.traceId,
    dottedOrder: identity.dottedOrder,
    parentRunId: identity.parentRunId,
    startTime: identity.startTime,
    project: identity.project,
    refused: identity.refused,
    name: identity.name,
    runType: identity.runType,
    tags: identity.tags,
    metadata: identity.metadata,
    runtime: identity.parentRunId === undefined ? runtimeJson : undefined,
    inputs: undefined,
    outputs: undefined,
    events: undefined,
    error: undefined,
    endTime: undefined,
    attachments: undefined,
  };
}

/**
 * Replaces the end time and the error of a run, for example to mark it as incomplete. An empty error clears the error of a run
 * that was sent as incomplete.
 */
export interface EndOverride {
  readonly endTime?: string;
  readonly error: string;
}

/**
 * The JSON text of a run without its payloads: the main part of multipart ingestion. While `ended` is false the fields
 * of the end are left out, whatever has become of the run in the meantime.
 */
export function mainJson(run: EncodedRun, ended: boolean, override?: EndOverride): string {
  const endTime = override?.endTime ?? run.endTime;
  const error = run.error ?? override?.error;
  let json =
    `{"id":"${run.id}","trace_id":"${run.traceId}","name":${jsonName(run.name)},"start_time":"${run.startTime}"` +
    `,"run_type":${jsonName(run.runType)},"dotted_order":"${run.dottedOrder}"`;
  if (run.parentRunId !== undefined) json += `,"parent_run_id":"${run.parentRunId}"`;
  const field = typeof run.project === 'string' ? 'session_name' : 'session_id';
  json += `,"${field}":${jsonName(projectText(run.project))}`;
  if (ended && endTime !== undefined) json += `,"end_time":"${endTime}"`;
  if (ended && error !== undefined) json += `,"error":${jsonText(error)}`;
  if (run.tags !== undefined) json += `,"tags":[${run.tags.map(jsonText).join(',')}]`;
  return `${json}${extraJson(run)}}`;
}

/** The JSON text of a whole run, payloads included; one that succeeded without outputs has empty ones. */
export function wholeJson(run: EncodedRun): string {
  let json = `${mainJson(run, true).slice(0, -1)},"inputs":${run.inputs ?? '{}'}`;
  const outputs = run.outputs ?? (run.endTime !== undefined && run.error === undefined ? '{}' : undefined);
  if (outputs !== undefined) json += `,"outputs":${outputs}`;
  if (run.events !== undefined) json += `,"events":${run.events}`;
  return `${json}}`;
}

/** Whether a payload has something in it; empty ones are not sent (interface, "POST /runs/multipart", rule 4). */
export function isFilled(payload: string | undefined): payload is string {
  return payload !== undefined && payload.length > 2;
}

function extraJson(run: EncodedRun): string {
  if (run.metadata === undefined) return run.runtime === undefined ? '' : `,"extra":{"runtime":${run.runtime}}`;
  let metadata = '';
  for (const [key, json] of run.metadata) metadata += `${metadata === '' ? '' : ','}${jsonName(key)}:${json}`;
  const runtime = run.runtime === undefined ? '' : `,"runtime":${run.runtime}`;
  return `,"extra":{"metadata":{${metadata}}${runtime}}`;
}

/** Names are few, and repeat with each run. */
const NAME_CHARACTERS_MAX = 64;
const NAMES_MAX = 1_000;

const names = new Map<string, string>();

/** Like `jsonText`, for the name of a run or a key. The result is cached. */
function jsonName(name: string): string {
  let json = names.get(name);
  if (json !== undefined) return json;
  json = jsonText(name);
  if (name.length > NAME_CHARACTERS_MAX) return json;
  if (names.size >= NAMES_MAX) names.clear();
  names.set(name, json);
  return json;
}
