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

/**
 * The error that `runspan dev` gives to runs that were open when their program ended. If such a run ends later, the
 * receiver removes the error.
 */
export const PROGRAM_ENDED = 'Interrupted: the program ended before the run did';

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
  extra?: { metadata?: Record<string, unknown>; runtime?: Record<string, unknown>; [key: string]: unknown };
  session_name?: string;
  /** The project's id, which is sent instead of `session_name`. */
  session_id?: string;
}
