import type { RunRecord, UsageMetadata } from '../../run/record.ts';
import type { Feedback, FeedbackFigures } from '../feedback/feedback.ts';

/** The fields that hold what a run was about. They may be megabytes, so that lists leave them out. */
export type PayloadField = 'inputs' | 'outputs' | 'events';

/** Stores number payloads in this order. */
export const PAYLOAD_FIELDS: readonly PayloadField[] = ['inputs', 'outputs', 'events'];

/** What is told of an attachment without its bytes. */
export interface AttachmentInfo {
  name: string;
  mime_type: string;
  /** Bytes. */
  size: number;
}

/** A run as a store gives it back. */
export interface StoredRun extends RunRecord {
  /** Absent when the run has none. `Store.attachment` gives the bytes. */
  attachments?: AttachmentInfo[];
}

/**
 * How a run stands. `pending` has not ended. `cancelled` and `interrupted` ended before their work did: the caller gave it up,
 * or nobody was left who would have ended it (`extra.metadata.end_reason`). `incomplete` was given up by its exporter,
 * and may go on. All others with an `error` are `error`.
 */
export type RunStatus = 'pending' | 'success' | 'error' | 'cancelled' | 'interrupted' | 'incomplete';

/** Tokens and costs. */
export type Usage = Pick<UsageMetadata, 'input_tokens' | 'output_tokens' | 'total_tokens' | 'total_cost'>;

/** Usage without a computed cost. */
export interface UnpricedUsage extends Usage {
  /** Surcharge for cache writes, expressed in input tokens. */
  cache_surcharge_tokens?: number;
}

/**
 * A run in the outline of a trace, with the fields that a tree and a waterfall show. Fields that the run lacks are
 * absent.
 */
export interface RunOutline {
  id: string;
  parent_run_id?: string;
  name: string;
  run_type: string;
  status: RunStatus;
  start_time: string;
  end_time?: string;
  /** In lists the first line, of 200 characters at the most. */
  error?: string;
  /** The model that was called: `ls_model_name` of the metadata, or `model` of the parameters that are told of the call. */
  model?: string;
  /** Tokens and costs that the run itself carries, in its outputs or in its metadata. */
  usage?: Usage;
  /** When the first piece of a streamed answer came. */
  first_token_time?: string;
}

/** A run in a line of a list. */
export interface RunSummary extends RunOutline {
  trace_id: string;
  session_name?: string;
  session_id?: string;
  tags?: string[];
  /** What the inputs say, in 200 characters at the most: their text, or JSON. */
  inputs_preview?: string;
  outputs_preview?: string;
}

/** A trace in a line of a list: its root, or the first of its runs while the root has not come. */
export interface TraceSummary extends RunSummary {
  /** Of the whole trace. */
  trace: {
    runs: number;
    pending: number;
    /** Runs whose status is `error`. */
    errors: number;
    /** The latest end of a run. */
    end_time?: string;
    /** The sum over runs of the types `llm` and `embedding`: what stands on runs around them as a rule repeats it. */
    usage?: Usage;
    feedback?: FeedbackFigures[];
  };
}

/** A run without its payloads. */
export interface RunDetails extends RunSummary {
  dotted_order: string;
  /** Whole: `Name: message` on the first line, then stack and causes. */
  error?: string;
  extra?: NonNullable<RunRecord['extra']>;
  /** Bytes of the payloads as JSON text, of those that the run has. */
  payload_sizes: Partial<Record<PayloadField, number>>;
  attachments?: AttachmentInfo[];
  feedback?: Feedback[];
}

/** A project with the traces that it has. */
export interface ProjectSummary {
  /** The name, or the id of one that came without a name; `default` for runs that came with neither. */
  name: string;
  traces: number;
  /** When its latest trace started. */
  last_start_time: string;
}
