import { RunspanError } from '../base/errors.ts';
import { firstLine, shown } from '../base/text.ts';
import { sizeOf } from '../payload/attachment.ts';
import { fieldsOf } from '../payload/fields.ts';
import type { RunRecord, RunType } from '../run/record.ts';

/** Recorded runs: the result of `recordRuns()`, a list of runs such as `await receiver.runs()`, or one run. */
export type Recorded = { readonly runs: readonly RunRecord[] } | readonly RunRecord[] | RunRecord;

/** Returns the list of recorded runs. Throws a RunspanError if `recorded` is not of type `Recorded`. */
export function recordedRuns(recorded: unknown): readonly RunRecord[] {
  const { runs: given } = fieldsOf(recorded);
  const runs = Array.isArray(given) ? given : recorded;
  const list: readonly unknown[] = Array.isArray(runs) ? runs : [runs];
  if (list.every(isRecord)) return list;
  const invalid = list.find((run) => !isRecord(run));
  const isPromise = typeof fieldsOf(invalid).then === 'function';
  throw new RunspanError(
    'RUNSPAN_INVALID_OPTION',
    'Expected the result of recordRuns(), a list of recorded runs such as `await receiver.runs()`, or one run, got ' +
      (isPromise ? 'a promise; await it' : shown(invalid)),
  );
}

function isRecord(value: unknown): value is RunRecord {
  const { id, name, run_type, dotted_order, start_time } = fieldsOf(value);
  return [id, name, run_type, dotted_order, start_time].every((field) => typeof field === 'string');
}

/** Parts of a run that tests compare. */
export interface RunFacts {
  name: string;
  runType: RunType;
  project: string | undefined;
  /** Whether the run is still open. */
  open: boolean;
  inputs: Record<string, unknown>;
  outputs: Record<string, unknown> | undefined;
  /** First line of the run's error, in the format `Name: message`. */
  error: string | undefined;
  events: EventFacts[] | undefined;
  tags: string[] | undefined;
  metadata: Record<string, unknown> | undefined;
  attachments: AttachmentFacts[] | undefined;
}

/** An event without its time. */
export interface EventFacts {
  name: string;
  data?: Record<string, unknown>;
}

/** An attachment without its bytes. */
export interface AttachmentFacts {
  name: string;
  mimeType: string;
  /** Size in bytes. */
  size: number;
}

export function factsOf(run: RunRecord): RunFacts {
  const { attachments } = run as { attachments?: readonly AnyAttachment[] };
  return {
    name: run.name,
    runType: run.run_type,
    project: run.session_name ?? run.session_id,
    open: run.end_time === undefined,
    inputs: run.inputs,
    outputs: run.outputs,
    error: run.error && firstLine(run.error),
    events: run.events?.map(({ name, kwargs }) => (kwargs === undefined ? { name } : { name, data: kwargs })),
    tags: run.tags,
    metadata: run.extra?.metadata,
    attachments: attachments?.map((one) =>
      'bytes' in one
        ? { name: one.name, mimeType: one.mimeType, size: sizeOf(one.bytes) }
        : { name: one.name, mimeType: one.mime_type, size: one.size },
    ),
  };
}

/** An attachment, as returned by a recorder or a receiver. */
type AnyAttachment =
  | { readonly name: string; readonly mimeType: string; readonly bytes: Uint8Array | Blob }
  | { readonly name: string; readonly mime_type: string; readonly size: number };
