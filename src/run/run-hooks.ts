import type { AttachmentContent } from '../payload/attachment.ts';
import type { RunType, UsageMetadata } from './record.ts';
import type { Fields } from './run-fields.ts';

/** The fields that `Run.set` changes while a run is open. */
export interface RunChanges {
  name?: string;
  /** Tags to add. Tags beyond 1 000 per run are left out. A list of more than 1 000 tags is ignored. */
  tags?: readonly string[];
  /** Metadata to add or replace. Metadata keys beyond 10 000 per run are left out. */
  metadata?: Fields;
  inputs?: Fields;
  outputs?: unknown;
  /** Token counts and costs of a model call. */
  usage?: UsageMetadata;
}

/**
 * The run that a hook receives, which is a `Run`. The fields contain the recorded data, after redaction and limits. Each
 * read of `tags`, `metadata`, `inputs` or `outputs` returns a new copy, so a change of the copy is not recorded. After
 * the run has been delivered, `metadata`, `inputs`, `outputs` and `error` are empty, because their memory is freed.
 */
export interface HookedRun {
  /** The run id: the option `id`, or a new UUIDv7. */
  readonly id: string;
  /** The id of the first run of the trace. */
  readonly traceId: string;
  /**
   * The position of the run in its trace: the start times and ids of all runs from the first run of the trace down to
   * this run.
   */
  readonly dottedOrder: string;
  readonly parentRunId: string | undefined;
  readonly runType: RunType;
  readonly name: string;
  /** A copy of the recorded tags, including inherited tags. Empty if there are none. */
  readonly tags: string[];
  /** A copy of the recorded metadata, including inherited metadata. Empty if there is none. */
  readonly metadata: Record<string, unknown>;
  /** A copy of the recorded inputs. Undefined if no inputs are recorded, for example with `hideInputs`. */
  readonly inputs: Record<string, unknown> | undefined;
  /** A copy of the recorded outputs. Undefined if no outputs are recorded yet. */
  readonly outputs: Record<string, unknown> | undefined;
  /** The recorded error text. Undefined if the run has not failed. */
  readonly error: string | undefined;
  /**
   * Changes recorded fields of the run. Tags and metadata are added to the existing ones; other fields are replaced.
   * Values are copied immediately. In a traced function, `outputs` set here take precedence over the function's result
   * and its option `outputs`.
   */
  set(changes: RunChanges): void;
  /**
   * Records an event with the current time and a copy of `data`. A run keeps at most 10 000 events with at most
   * `limits.payloadBytes` characters in total. Events beyond these limits are not recorded but counted in
   * `extra.metadata.dropped_events`.
   */
  event(name: string, data?: Fields): void;
  /**
   * Attaches bytes or a `Blob` to the run, for example an image that was sent to a model. Bytes are copied. A `Blob` is
   * read when the run is sent, so `fs.openAsBlob(path)` attaches a file without loading the file into memory.
   *
   * `name` must be unique in the run, have at most 256 characters and contain no dot. `mimeType` defaults to the type
   * of the `Blob`, or to `application/octet-stream`. A run has at most 100 attachments with at most
   * `limits.attachmentBytes` bytes in total. An attachment that is invalid or exceeds a limit is left out, and a
   * warning is logged.
   */
  attach(name: string, content: AttachmentContent, mimeType?: string): void;
}

/**
 * Functions that are called when a run starts and ends. They are not called for runs that are not recorded. Traced
 * functions that a hook calls are not recorded. If a hook throws or rejects, one line is logged and the application is
 * not affected. A promise that a hook returns is not awaited.
 */
export interface RunHooks {
  /** Called after the run has started, before the traced function is called. */
  onStart?(run: HookedRun): unknown;
  /**
   * Called when the run ends, with its outputs or its error. The end time is already fixed, and `run.set` still changes
   * the recorded fields.
   */
  onEnd?(run: HookedRun): unknown;
}
