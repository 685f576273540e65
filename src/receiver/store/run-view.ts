import type { RunRecord, UsageMetadata } from '../../run/record.ts';
import type { Feedback, FeedbackFigures } from '../feedback/feedback.ts';

/** The fields that may be megabytes. Lists do not have them. */
export type PayloadField = 'inputs' | 'outputs' | 'events';

export const PAYLOAD_FIELDS: readonly PayloadField[] = ['inputs', 'outputs', 'events'];

/** An attachment without its bytes. */
export interface AttachmentInfo {
  name: string;
  mime_type: string;
  /** Bytes. */
  size: number;
}

/** A run as a store returns it. */
export interface StoredRun extends RunRecord {
  /** Absent if there are none. `Store.attachment` returns the bytes. */
  attachments?: AttachmentInfo[];
}

/**
 * The status of a run. `pending`: has not ended. `cancelled`: the caller gave up. `interrupted`: nothing was left that
 * could end the run. Both come from `extra.metadata.end_reason`. `incomplete`: its exporter gave up, and the run may
 * still go on. `error`: any other run with an `error`.
 */
export type RunStatus = 'pending' | 'success' | 'error' | 'cancelled' | 'interrupted' | 'incomplete';

/** Tokens and costs. */
export type Usage = Pick<UsageMetadata, 'input_tokens' | 'output_tokens' | 'total_tokens' | 'total_cost'>;

/** Usage without a computed cost. */
export interface UnpricedUsage extends Usage {
  /** Surcharge for cache writes, expressed in input tokens. */
  cache_surcharge_tokens?: number;
}

/** A run in the outline of a trace. Fields that the run does not have are absent. */
export interface RunOutline {
  id: string;
  parent_run_id?: string;
  name: string;
  run_type: string;
  status: RunStatus;
  start_time: string;
  end_time?: string;
  /** The first line, up to 200 characters. */
  error?: string;
  /** `ls_model_name` of the metadata, or `model` of the parameters of the call. */
  model?: string;
  /** Tokens and costs in the outputs or the metadata of the run itself. */
  usage?: Usage;
  /** The time of the first token of a streamed answer. */
  first_token_time?: string;
}

/** A run in a list. */
export interface RunSummary extends RunOutline {
  trace_id: string;
  session_name?: string;
  session_id?: string;
  tags?: string[];
  /** The text of the inputs, or their JSON, up to 200 characters. */
  inputs_preview?: string;
  outputs_preview?: string;
}

/** A trace in a list: its root, or its first run until the root arrives. */
export interface TraceSummary extends RunSummary {
  /** The totals of the trace. */
  trace: {
    runs: number;
    pending: number;
    /** Runs whose status is `error`. */
    errors: number;
    /** The latest end of a run. */
    end_time?: string;
    /** The sum over model calls, and over other runs without usage below them, which often repeat it. */
    usage?: Usage;
    feedback?: FeedbackFigures[];
  };
}

/** A run without its payloads. */
export interface RunDetails extends RunSummary {
  dotted_order: string;
  /** The whole error: `Name: message` on the first line, then the stack and the causes. */
  error?: string;
  extra?: NonNullable<RunRecord['extra']>;
  /** The bytes of each payload as JSON text. */
  payload_sizes: Partial<Record<PayloadField, number>>;
  attachments?: AttachmentInfo[];
  feedback?: Feedback[];
}

/** A project in a list. */
export interface ProjectSummary {
  /** The name, or the id if it has no name, or `default` for runs without a project. */
  name: string;
  traces: number;
  /** The start of its latest trace. */
  last_start_time: string;
}
