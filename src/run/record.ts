export type { UsageMetadata } from '../payload/usage.ts';

/** A run's type. Trace viewers recognize the listed types. Other strings are sent unchanged. */
export type RunType = 'chain' | 'llm' | 'tool' | 'retriever' | 'embedding' | 'prompt' | 'parser' | (string & {});

/** An event in a run, for example the first token of a stream. */
export interface RunEvent {
  name: string;
  /** ISO 8601 timestamp in UTC. */
  time: string;
  kwargs?: Record<string, unknown>;
}

/** Binary data that is sent with a run, separate from the inputs and outputs. */
export interface Attachment {
  name: string;
  bytes: Uint8Array;
  mimeType: string;
}

export type EndReason = NonNullable<NonNullable<RunRecord['extra']>[typeof END_REASON]>;

/** The field of `extra` with the end reason. Only the library sets it: texts and metadata of the application cannot. */
export const END_REASON = 'runspan_end_reason';

const END_REASONS: readonly unknown[] = ['cancelled', 'interrupted', 'incomplete'] satisfies EndReason[];

export function endReasonOf({ extra }: { readonly extra?: object | undefined }): EndReason | undefined {
  const reason: unknown = (extra as RunRecord['extra'])?.[END_REASON];
  return END_REASONS.includes(reason) ? (reason as EndReason) : undefined;
}

/** The error of runs that were open when their program ended. If such a run ends later, the receiver removes the error. */
export const PROGRAM_ENDED = 'Interrupted: the program ended before the run did';

export function hasProgramEnded(run: Pick<RunRecord, 'error' | 'extra'>): boolean {
  return run.error === PROGRAM_ENDED && endReasonOf(run) === 'interrupted';
}

/** A run in the format of the service's API. The receiver and `recordRuns()` return runs in this format. */
export interface RunRecord {
  id: string;
  trace_id: string;
  dotted_order: string;
  parent_run_id?: string;
  name: string;
  run_type: RunType;
  /** ISO 8601 timestamp in UTC with microseconds. */
  start_time: string;
  /** ISO 8601 timestamp, like `start_time`. Absent while the run is open. */
  end_time?: string;
  inputs: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  events?: RunEvent[];
  /** The error text: `Name: message` on the first line, then the stack and the causes. Absent if the run succeeded. */
  error?: string;
  tags?: string[];
  /** Id of the dataset example that this run evaluates. */
  reference_example_id?: string;
  extra?: {
    metadata?: Record<string, unknown>;
    runtime?: Record<string, unknown>;
    /**
     * How the run has ended, if not by itself. `cancelled`: its caller stopped it. `interrupted`: it was abandoned, or its
     * program has ended. `incomplete`: the exporter stopped waiting for its end.
     */
    runspan_end_reason?: 'cancelled' | 'interrupted' | 'incomplete';
    [key: string]: unknown;
  };
  session_name?: string;
  /** The project's id, which is sent instead of `session_name`. */
  session_id?: string;
}
