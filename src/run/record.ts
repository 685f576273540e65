/** A run's type. Viewers recognize the listed types. Any other text is sent unchanged. */
export type RunType = 'chain' | 'llm' | 'tool' | 'retriever' | 'embedding' | 'prompt' | 'parser' | (string & {});

/** An event within a run, for example the first token of a stream. */
export interface RunEvent {
  name: string;
  /** ISO 8601 timestamp in UTC. */
  time: string;
  kwargs?: Record<string, unknown>;
}

/**
 * Token counts and costs of a model call. `input_tokens` and `output_tokens` include the tokens in the token details,
 * for example cached tokens.
 */
export interface UsageMetadata {
  input_tokens?: number;
  output_tokens?: number;
  total_tokens?: number;
  input_token_details?: Record<string, number>;
  output_token_details?: Record<string, number>;
  input_cost?: number;
  output_cost?: number;
  total_cost?: number;
}

/** Binary data that is sent with a run, in addition to its payloads. */
export interface Attachment {
  name: string;
  bytes: Uint8Array;
  mimeType: string;
}

/** A run with the field names of the service's API. The receiver and `recordRuns()` return runs in this format. */
export interface RunRecord {
  id: string;
  trace_id: string;
  dotted_order: string;
  parent_run_id?: string;
  name: string;
  run_type: RunType;
  /** ISO 8601 timestamp in UTC with microseconds. */
  start_time: string;
  /** The end time, in the same format as `start_time`. Absent while the run is open. */
  end_time?: string;
  inputs: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  events?: RunEvent[];
  /** The error text: `Name: message` on the first line, then the stack and the causes. Absent if the run succeeded. */
  error?: string;
  tags?: string[];
  /** Id of the dataset example that the run evaluates. */
  reference_example_id?: string;
  extra?: { metadata?: Record<string, unknown>; runtime?: Record<string, unknown>; [key: string]: unknown };
  session_name?: string;
  /** The project's id. Sent instead of `session_name`. */
  session_id?: string;
}
