import type { RunRecord, UsageMetadata } from '../../run/record.ts';
import type { Feedback, FeedbackFigures } from './feedback.ts';

/** Fields that lists omit, because they may be megabytes long. */
export type PayloadField = 'inputs' | 'outputs' | 'events';

export const PAYLOAD_FIELDS: readonly PayloadField[] = ['inputs', 'outputs', 'events'];

/** Image types that are safe to show, because they contain only pixels. */
export const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** An attachment without its bytes. */
export interface AttachmentInfo {
  name: string;
  mime_type: string;
  /** Size of the attachment in bytes. */
  size: number;
}

/** A run as a store returns it. */
export interface StoredRun extends RunRecord {
  /**
   * Attachments of the run, without their bytes. `Store.attachment` returns the bytes. Absent if the run has no
   * attachments.
   */
  attachments?: AttachmentInfo[];
}

/**
 * A run's status. `pending`: the run has not ended. `cancelled`: the caller cancelled the run. `interrupted`: the run
 * was abandoned, or its program has ended. `incomplete`: the exporter stopped waiting for the run's end, but the run may
 * still continue. These three are read from `extra.runspan_end_reason`. `error`: any other run with an `error`.
 */
export type RunStatus = 'pending' | 'success' | 'error' | 'cancelled' | 'interrupted' | 'incomplete';

export const RUN_STATUSES: readonly RunStatus[] = [
  ...(['pending', 'success', 'error', 'cancelled', 'interrupted', 'incomplete'] as const),
];

/**
 * What became of a trace. `failed_below`: the root has not failed, but the last call has, or the run whose outputs are shown,
 * or any run of a request whose response has status 4xx or 5xx. `incomplete`: the root has not arrived, or the exporter
 * stopped waiting for its end. Otherwise the status of the root.
 */
export type TraceOutcome = RunStatus | 'failed_below';

/** Tokens and costs, and what caching did. */
export interface Usage extends Pick<UsageMetadata, 'input_tokens' | 'output_tokens' | 'total_tokens' | 'total_cost'> {
  /** Input tokens that were read from a cache. They are part of `input_tokens`. Absent if no such tokens are reported. */
  cached_tokens?: number;
  /**
   * What caching saved: the cost without caching, minus `total_cost`. Negative if writing to the cache cost more than
   * reading from it saved. Absent if nothing was cached, if the run reports its cost itself, or if a price of caching is
   * unknown.
   */
  cache_savings?: number;
}

/**
 * Counts with their own prices. The tokens are part of `input_tokens` and `output_tokens`. A count is absent if the run
 * does not report it.
 */
export interface UsageDetails {
  /** Input tokens that were read from a cache. */
  cache_read?: number;
  /** Input tokens that were written to a cache, for any lifetime. */
  cache_write?: number;
  /** Input tokens that were written to a cache for 1 hour. They are part of `cache_write`. */
  cache_write_1h?: number;
  input_audio?: number;
  /** Audio tokens that were read from a cache. They are part of `cache_read` and `input_audio`. */
  cache_audio_read?: number;
  input_image?: number;
  /** Image tokens that were read from a cache. They are part of `cache_read` and `input_image`. */
  cache_image_read?: number;
  input_video?: number;
  output_reasoning?: number;
  output_audio?: number;
  output_image?: number;
  output_video?: number;
  /** Number of web searches. */
  web_searches?: number;
  /** Service tier, speed or region with its own prices, for example `priority`. Absent for the standard price. */
  tier?: string;
  /** Set if a count is not a whole number from 0 to 1,000,000,000. */
  is_invalid?: true;
}

/** Token usage whose cost has not been calculated yet. */
export interface UnpricedUsage extends Usage {
  /** Absent if no counts have their own prices. */
  details?: UsageDetails;
  /** The service that was called: `ls_provider` in the metadata. */
  provider?: string;
}

/** Where the cost of a run comes from. Both fields are absent if the run itself reports its cost, or has no usage. */
export interface CostSource {
  /** Version of the prices with which the cost was calculated, for example `genai-prices 0.1.8`. */
  price_table?: string;
  /** Why the cost is unknown, for example `no price for model "x"`. */
  no_cost?: string;
}

/** A call of a tool. `id` pairs the call with its result. Without an id from the service, `id` is the name and the arguments. */
export type CalledTool = { id: string; name: string; arguments: string };

/** The result of a call, as text or JSON. `is_error` is set if the tool failed. */
export type ToolOutcome = { id: string; text: string; is_error?: true };

/**
 * The tool calls in the answer of a model, and the results after the last answer in the request. Texts have at most 200
 * characters. Items beyond 4 KiB of JSON are left out.
 */
export type ToolMessages = { calls?: CalledTool[]; results?: ToolOutcome[] };

/** Short form of a run for the tree view of a trace. Fields without a value are absent. */
export interface RunOutline {
  id: string;
  parent_run_id?: string;
  name: string;
  run_type: string;
  status: RunStatus;
  start_time: string;
  end_time?: string;
  /** First line of the error, and of its deepest cause. Maximum length: 200 characters. */
  error?: string;
  /** Model name: `ls_model_name` in the metadata, or `model` in the call parameters. */
  model?: string;
  /** Token counts and costs from this run's outputs or metadata, without those of nested runs. */
  usage?: Usage;
  /** Time at which the first token of a streamed response arrived. */
  first_token_time?: string;
  /** Id of the call of a tool, from the metadata. */
  tool_call_id?: string;
  /** Only in the outline of a trace. Absent if the run is not a model call. */
  tools?: ToolMessages;
  /** The source that has recorded a call. Absent if the application itself has. */
  recorded_by?: string;
  /**
   * Id of the outermost run that records the same call, or of the first one if none is outermost. This run is then not a
   * model call of its own, and its error does not count.
   */
  same_call_as?: string;
  /** `false` if the usage does not count, because the usage of another run contains or repeats it. Otherwise absent. */
  usage_counts?: false;
  /** `true` if a framework has added the run for itself, for example LangGraph's `__start__`. Otherwise absent. */
  internal?: true;
}

/** A run as it appears in a list. */
export interface RunSummary extends Omit<RunOutline, 'tools'> {
  trace_id: string;
  session_name?: string;
  session_id?: string;
  /** Conversation of the run, from its metadata. */
  thread?: string;
  /** User of the run, from its metadata. */
  user?: string;
  tags?: string[];
  /** Preview of the inputs, as text or as JSON. Maximum length: 200 characters. */
  inputs_preview?: string;
  outputs_preview?: string;
}

/**
 * A trace as it appears in a list: its root run, with what the trace says as a whole. The thread and the user are those of the
 * root, or else of the first run that has one. The previews are those of the runs in `trace`. If the outcome is `failed_below`,
 * `error` is that of `trace.failed_run_id`. Until the root arrives, the first run that is not internal takes its place.
 */
export interface TraceSummary extends RunSummary {
  outcome: TraceOutcome;
  /** Totals over all runs in the trace. */
  trace: {
    runs: number;
    pending: number;
    /** Number of runs with the status `error`, without further records of a call (`same_call_as`). */
    errors: number;
    /** Number of runs of type `llm` and `embedding`, without further records of a call. */
    model_calls: number;
    /** The run whose inputs are shown: the root if it has inputs, else the first run that has. */
    asked_run_id?: string;
    /**
     * The run whose outputs are shown: the root if it has outputs or has failed, else the run that was asked, or the last run
     * with outputs if it started after the run that was asked had ended. Absent while the root is pending and has no outputs.
     */
    answered_run_id?: string;
    /** The last run with the status `error`, without further records of a call. */
    failed_run_id?: string;
    /** Latest end time of all runs in the trace. */
    end_time?: string;
    /**
     * Total usage of all model calls. If several runs record the same call, one usage counts. Other runs often repeat the
     * usage of nested runs, so they count only if no nested run has usage.
     */
    usage?: Usage;
    feedback?: FeedbackFigures[];
  };
}

/** A thread as it appears in a list. Each trace that shows the thread is a turn. */
export interface ThreadSummary {
  /** Id of the thread: `thread_id`, `session_id` or `conversation_id` in the metadata. */
  thread: string;
  /** User of the latest turn that has a user. */
  user?: string;
  /** Project of the latest turn. */
  project: string;
  turns: number;
  /** Number of turns with the outcome `error`. */
  errors: number;
  /** Number of turns with the outcome `failed_below`. */
  failed_below: number;
  /** Start time of the first turn. */
  start_time: string;
  /** Start time of the latest turn. */
  last_start_time: string;
  /** Median and maximum latency of the turns that have ended. Absent if no turn has ended. */
  latency_ms?: { p50: number; max: number };
  /** Total usage of all turns, counted as in `TraceSummary`. */
  usage?: Usage;
  feedback?: FeedbackFigures[];
  /** Preview of the inputs of the first turn. */
  inputs_preview?: string;
  /** Preview of the outputs of the latest turn. */
  outputs_preview?: string;
}

/** A run as the page and the command show it, without its payloads. */
export interface RunDetails extends RunSummary, CostSource {
  dotted_order: string;
  /** The complete error. The first line `Name: message` is followed by the stack and the causes. */
  error?: string;
  extra?: NonNullable<RunRecord['extra']>;
  /** Size of each payload as JSON text, in bytes. */
  payload_sizes: Partial<Record<PayloadField, number>>;
  attachments?: AttachmentInfo[];
  feedback?: Feedback[];
}

/** The data in a trace that is saved as an HTML file. */
export interface SavedData {
  id: string;
  savedMs: number;
  /** Number of runs that the file leaves out. */
  omittedRuns: number;
  /** What the trace says as a whole. Texts of runs are left out, because the beginning of a secret cannot be masked. */
  summary?: Omit<TraceSummary, 'error' | 'inputs_preview' | 'outputs_preview'>;
  /** Pairs of a path and its response. The response of an attachment is a data URI. */
  responses: [path: string, response: unknown][];
}

/** A project as it appears in a list. */
export interface ProjectSummary {
  /** Name of the project, or its id if the name is unknown. Runs without a project belong to `default`. */
  name: string;
  traces: number;
  /** Start time of the latest trace in the project. */
  last_start_time: string;
}

/** The first difference between the prompts of two model calls. */
export interface PromptDifference {
  /** For example `tool 2 "search"`, `the system prompt` or `message 3 (user)`. Lists count from 1. */
  place: string;
  /** What the earlier prompt has there. Absent if it is the same tool, or a message of the same role. */
  earlier_place?: string;
  /** Position of the first different character in the system prompt, from 1. */
  character?: number;
  /** Excerpts of both prompts. Absent if the difference is in Base64 data, or if `earlier_place` is set. */
  before?: string;
  after?: string;
  /** Share of the earlier prompt's text with which both prompts begin, from 0 to 1. */
  equal_share: number;
}

/**
 * A comparison with an earlier model call of the same thread, or of the same trace if the run has no thread. All fields
 * are absent if there is no such call.
 */
export interface CacheComparison {
  previous_run_id?: string;
  previous_trace_id?: string;
  /** Seconds between the starts of both calls. */
  seconds_before?: number;
  /** Share of the input tokens that were read from the cache, from 0 to 1. Absent if the call does not report it. */
  cached_share?: number;
  /** Absent if one prompt is the beginning of the other, or if the cache served the call. */
  difference?: PromptDifference;
  /** The difference in sentences. */
  text?: string;
}

/** Replaces NUL and unpaired surrogates with U+FFFD, because databases cut or replace them. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').replace(/\p{Surrogate}/gu, '\ufffd');
}
