import type { RunRecord, UsageMetadata } from '../../run/record.ts';
import type { Feedback, FeedbackFigures } from '../feedback/feedback.ts';

/** Fields that may be megabytes long and that lists omit. */
export type PayloadField = 'inputs' | 'outputs' | 'events';

export const PAYLOAD_FIELDS: readonly PayloadField[] = ['inputs', 'outputs', 'events'];

/** An attachment without its bytes. */
export interface AttachmentInfo {
  name: string;
  mime_type: string;
  /** Size of the attachment in bytes. */
  size: number;
}

/** A run as a store returns it. */
export interface StoredRun extends RunRecord {
  /** The run's attachments without their bytes, which `Store.attachment` returns. Absent if there are none. */
  attachments?: AttachmentInfo[];
}

/**
 * A run's status. `pending`: the run has not ended. `cancelled`: the caller cancelled the run. `interrupted`: the run
 * was abandoned, so nothing could end it anymore. Both `cancelled` and `interrupted` come from
 * `extra.metadata.end_reason`. `incomplete`: the exporter stopped waiting for the run's end, and the run may still
 * continue. `error`: any other run with an `error`.
 */
export type RunStatus = 'pending' | 'success' | 'error' | 'cancelled' | 'interrupted' | 'incomplete';

export const RUN_STATUSES: readonly RunStatus[] = [
  'pending',
  'success',
  'error',
  'cancelled',
  'interrupted',
  'incomplete',
];

/** Tokens and costs. */
export type Usage = Pick<UsageMetadata, 'input_tokens' | 'output_tokens' | 'total_tokens' | 'total_cost'>;

/** Usage whose cost has not been computed yet. */
export interface UnpricedUsage extends Usage {
  /** Surcharge for cache writes, as a number of input tokens. */
  cache_surcharge_tokens?: number;
}

/** A run as it appears in a trace's outline. Fields that the run does not have are absent. */
export interface RunOutline {
  id: string;
  parent_run_id?: string;
  name: string;
  run_type: string;
  status: RunStatus;
  start_time: string;
  end_time?: string;
  /** First line of the error, at most 200 characters. */
  error?: string;
  /** Model name: `ls_model_name` in the metadata, or `model` in the call parameters. */
  model?: string;
  /** Token counts and costs from this run's outputs or metadata. Nested runs are not included. */
  usage?: Usage;
  /** Time at which the first token of a streamed response arrived. */
  first_token_time?: string;
}

/** A run as it appears in a list. */
export interface RunSummary extends RunOutline {
  trace_id: string;
  session_name?: string;
  session_id?: string;
  tags?: string[];
  /** Preview of the inputs, at most 200 characters: their text, or otherwise their JSON. */
  inputs_preview?: string;
  outputs_preview?: string;
}

/** A trace as it appears in a list. Contains the root run's fields, or the first run's until the root arrives. */
export interface TraceSummary extends RunSummary {
  /** Totals over all runs of the trace. */
  trace: {
    runs: number;
    pending: number;
    /** Number of runs with the status `error`. */
    errors: number;
    /** The latest end time of a run in the trace. */
    end_time?: string;
    /**
     * Usage summed over model calls. Runs that are not model calls count only if none of their nested runs has usage,
     * because they often repeat that usage.
     */
    usage?: Usage;
    feedback?: FeedbackFigures[];
  };
}

/** All fields of a run except its payloads. */
export interface RunDetails extends RunSummary {
  dotted_order: string;
  /** The complete error: `Name: message` on the first line, then the stack and the causes. */
  error?: string;
  extra?: NonNullable<RunRecord['extra']>;
  /** Size of each payload as JSON, in bytes. */
  payload_sizes: Partial<Record<PayloadField, number>>;
  attachments?: AttachmentInfo[];
  feedback?: Feedback[];
}

/** A project as it appears in a list. */
export interface ProjectSummary {
  /** The project's name, or its id if the name is unknown. Runs without a project belong to `default`. */
  name: string;
  traces: number;
  /** Start time of the project's latest trace. */
  last_start_time: string;
}
