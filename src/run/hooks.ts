import type { AttachmentContent } from '../payload/attachment.ts';
import type { Fields } from './fields.ts';
import type { RunType, UsageMetadata } from './record.ts';

/** The fields of an open run that `Run.set` can change. */
export interface RunChanges {
  name?: string;
  /** Tags to add to the run. A run keeps at most 1,000 tags. A list of more than 1,000 tags is ignored. */
  tags?: readonly string[];
  /** Metadata to add or replace. A run keeps at most 10,000 metadata keys. */
  metadata?: Fields;
  inputs?: Fields;
  outputs?: unknown;
  /** Token counts and costs of a model call. */
  usage?: UsageMetadata;
}

/**
 * The `Run` that a hook receives. The fields contain the recorded data, after redaction and limits. `tags`, `metadata`,
 * `inputs` and `outputs` return a new copy on each read, so changing a copy does not change the run. To free memory,
 * `metadata`, `inputs`, `outputs` and `error` may be empty from the next turn of the event loop after the run's end.
 */
export interface HookedRun {
  /** The run id: the `id` option, or a generated UUIDv7. */
  readonly id: string;
  /** The id of the first run in the trace. */
  readonly traceId: string;
  /** The run's position in its trace: the start time and id of each run from the root to this run. */
  readonly dottedOrder: string;
  readonly parentRunId: string | undefined;
  readonly runType: RunType;
  readonly name: string;
  /** A copy of the recorded tags, including inherited tags. Empty if the run has no tags. */
  readonly tags: string[];
  /** A copy of the recorded metadata, including inherited metadata. Empty if the run has no metadata. */
  readonly metadata: Record<string, unknown>;
  /** A copy of the recorded inputs. Undefined if no inputs are recorded, for example with `hideInputs`. */
  readonly inputs: Record<string, unknown> | undefined;
  /** A copy of the recorded outputs. Undefined if no outputs are recorded yet. */
  readonly outputs: Record<string, unknown> | undefined;
  /** The recorded error text. Undefined if the run has not failed. */
  readonly error: string | undefined;
  /**
   * Address of the run's page, for example for a log line. Undefined while tracing is off, if the trace is left out, and
   * if the service has no known page. See `traceUrl`.
   */
  readonly url: string | undefined;
  /**
   * Changes recorded fields of the run. Tags and metadata are added to the existing ones, and other fields are
   * replaced. Values are copied immediately. In a traced function, `outputs` passed to `set` override the function's
   * result and its `outputs` option.
   */
  set(changes: RunChanges): void;
  /**
   * Records an event with the current time and a copy of `data`. A run keeps at most 10,000 events with at most
   * `limits.payloadCharacters` characters in total. Further events are dropped and counted in
   * `extra.metadata.dropped_events`.
   */
  event(name: string, data?: Fields): void;
  /**
   * Attaches bytes or a `Blob` to the run, for example an image sent to a model. Bytes are copied. A `Blob` is read
   * when the run is sent, so `fs.openAsBlob(path)` attaches a file without loading it into memory.
   *
   * `name` must be unique in the run, must not contain a dot, and can have up to 256 characters. `mimeType` defaults to
   * the `Blob`'s type, or to `application/octet-stream`. A run can have up to 100 attachments with up to
   * `limits.attachmentBytes` bytes in total. If an attachment is invalid or exceeds a limit, the attachment is dropped
   * and a warning is logged.
   */
  attach(name: string, content: AttachmentContent, mimeType?: string): void;
}

/**
 * Functions that are called when a recorded run starts and ends. Tracing is off inside hooks. If a hook throws or
 * rejects, the error is logged and the application continues. A promise returned by a hook is not awaited.
 */
export interface RunHooks {
  /** Called when the run has started, before the traced function is called. */
  onStart?(run: HookedRun): unknown;
  /**
   * Called when the run ends. The run already has its outputs or error, and its end time is fixed. `run.set` can still
   * change the recorded fields.
   */
  onEnd?(run: HookedRun): unknown;
}
