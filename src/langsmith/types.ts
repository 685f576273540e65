// LangSmith's types use `any`: programs read `tree.inputs.question` without a cast, and the parameters of an inline
// function that is passed to `traceable` need no types.

// biome-ignore lint/suspicious/noExplicitAny: see above
export type KVMap = Record<string, any>;

// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyFunction = (...args: any[]) => any;

/** Attachments by name, each with its MIME type and bytes. */
export type Attachments = Record<
  string,
  [mimeType: string, data: Uint8Array | ArrayBuffer] | { mimeType: string; data: Uint8Array | ArrayBuffer }
>;

/** The fields of a run that `Client.createRun` and `RunTree.postRun` record. */
export interface RunCreate {
  name: string;
  run_type?: string | undefined;
  id?: string | undefined;
  inputs?: KVMap | undefined;
  outputs?: KVMap | undefined;
  error?: string | undefined;
  start_time?: number | string | undefined;
  end_time?: number | string | undefined;
  /** Only `extra.metadata` is recorded. */
  extra?: KVMap | undefined;
  tags?: string[] | undefined;
  events?: KVMap[] | undefined;
  parent_run_id?: string | undefined;
  trace_id?: string | undefined;
  dotted_order?: string | undefined;
  session_name?: string | undefined;
  project_name?: string | undefined;
  reference_example_id?: string | undefined;
  attachments?: Attachments | undefined;
}
