// LangSmith's types use `any`. Programs can read `tree.inputs.question` without a cast. Inline functions passed to
// `traceable` need no parameter types.

/** An object with values of any type. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type KVMap = Record<string, any>;

/** A function of any type. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyFunction = (...args: any[]) => any;

/** Attachments, keyed by name. Each attachment has a MIME type and bytes. */
export type Attachments = Record<
  string,
  [mimeType: string, data: Uint8Array | ArrayBuffer] | { mimeType: string; data: Uint8Array | ArrayBuffer }
>;

/** Run fields that `Client.createRun` and `RunTree.postRun` record. Only `name` is required. */
export interface RunCreate {
  name: string;
  /** @default 'chain' */
  run_type?: string | undefined;
  /** UUID of the run. @default a new UUIDv7 */
  id?: string | undefined;
  inputs?: KVMap | undefined;
  outputs?: KVMap | undefined;
  error?: string | undefined;
  /** Start time, in milliseconds since the Unix epoch or as ISO 8601 text. @default now */
  start_time?: number | string | undefined;
  end_time?: number | string | undefined;
  /** Extra data, of which only `extra.metadata` is recorded. */
  extra?: KVMap | undefined;
  tags?: string[] | undefined;
  events?: KVMap[] | undefined;
  parent_run_id?: string | undefined;
  trace_id?: string | undefined;
  dotted_order?: string | undefined;
  session_name?: string | undefined;
  /** @default the parent's project, or the exporter's project for a root run */
  project_name?: string | undefined;
  reference_example_id?: string | undefined;
  attachments?: Attachments | undefined;
  child_runs?: RunCreate[] | undefined;
}

/** LangChain's configuration for a call, including the callbacks that trace the call. */
export interface RunnableConfigLike {
  tags?: string[];
  metadata?: Record<string, unknown>;
  callbacks?: KVMap | unknown[];
}

/** A stored run, as returned by the service. */
export interface Run extends RunCreate {
  id: string;
  run_type: string;
  inputs: KVMap;
  session_id?: string;
  child_run_ids?: string[];
  child_runs?: Run[];
  feedback_stats?: KVMap;
  app_path?: string;
  status?: string;
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  first_token_time?: number;
  parent_run_ids?: string[];
  in_dataset?: boolean;
}
