import type { RunRecord, UsageMetadata } from '../../run/record.ts';
import type { Feedback, FeedbackFigures } from '../feedback/feedback.ts';

/** Fields that may be megabytes long. Lists omit them. */
export type PayloadField = 'inputs' | 'outputs' | 'events';

export const PAYLOAD_FIELDS: readonly PayloadField[] = ['inputs', 'outputs', 'events'];

/** An attachment without its bytes. */
export interface AttachmentInfo {
  name: string;
  mime_type: string;
  /** Size in bytes. */
  size: number;
}

/** A run that a store returns. */
export interface StoredRun extends RunRecord {
  /** Attachments without their bytes, which `Store.attachment` returns. Absent if there are none. */
  attachments?: AttachmentInfo[];
}

/**
 * Status of a run. `pending`: the run has not ended. `cancelled`: the caller cancelled the run. `interrupted`: nothing
 * remained that could end the run. Both come from `extra.metadata.end_reason`. `incomplete`: the exporter stopped
 * waiting for the end, and the run may still continue. `error`: any other run with an `error`.
 */
export type RunStatus = 'pending' | 'success' | 'error' | 'cancelled' | 'interrupted' | 'incomplete';

/** Tokens and costs. */
export type Usage = Pick<UsageMetadata, 'input_tokens' | 'output_tokens' | 'total_tokens' | 'total_cost'>;

/** Usage without a computed cost. */
export interface UnpricedUsage extends Usage {
  /** Surcharge for cache writes, converted to input tokens. */
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
  /** First line of the error, up to 200 characters. */
  error?: string;
  /** Model name: `ls_model_name` in the metadata, or `model` in the call parameters. */
  model?: string;
  /** Tokens and costs from the outputs or the metadata of this run, without nested runs. */
  usage?: Usage;
  /** Time of the first token in a streamed answer. */
  first_token_time?: string;
}

/** A run in a list. */
export interface RunSummary extends RunOutline {
  trace_id: string;
  session_name?: string;
  session_id?: string;
  tags?: string[];
  /** Text of the inputs, or their JSON text, up to 200 characters. */
  inputs_preview?: string;
  outputs_preview?: string;
}

/** A trace in a list. The fields are those of its root, or of its first run until the root arrives. */
export interface TraceSummary extends RunSummary {
  /** Totals of the trace. */
  trace: {
    runs: number;
    pending: number;
    /** Number of runs with the status `error`. */
    errors: number;
    /** Latest end time of its runs. */
    end_time?: string;
    /**
     * Sum of the usage of model calls. Other runs often repeat the usage of nested runs, so they count only if no
     * nested run has usage.
     */
    usage?: Usage;
    feedback?: FeedbackFigures[];
  };
}

/** A run without its payloads. */
export interface RunDetails extends RunSummary {
  dotted_order: string;
  /** Complete error: `Name: message` on the first line, then the stack and the causes. */
  error?: string;
  extra?: NonNullable<RunRecord['extra']>;
  /** Size of each payload's JSON text in bytes. */
  payload_sizes: Partial<Record<PayloadField, number>>;
  attachments?: AttachmentInfo[];
  feedback?: Feedback[];
}

/** A project in a list. */
export interface ProjectSummary {
  /** Name of the project, or its id if it has no name. `default` for runs without a project. */
  name: string;
  traces: number;
  /** Start time of its latest trace. */
  last_start_time: string;
}
