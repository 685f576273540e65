import { clock } from '../base/clock.ts';
import { guard } from '../base/guard.ts';
import { steps } from '../integrations/langchain/steps.ts';
import { defined, fieldsOf, listOf, parseExact } from '../payload/fields.ts';
import { isOff, outsideOfRuns, type RunContext } from '../run/context/context.ts';
import { currentContext } from '../run/context/current.ts';
import { projectText } from '../run/encoded-run.ts';
import { newRunId, runIdAt } from '../run/ids.ts';
import {
  baggageMember,
  baggageValue,
  fromHeaders,
  headerOf,
  parseBaggage,
  type RemoteRun,
} from '../run/propagation/propagation.ts';
import type { Run } from '../run/run.ts';
import { currentSink } from '../run/sink.ts';
import { currentRun } from '../run/start-run.ts';
import { dottedOrder, parseDottedOrder, timestampUs } from '../run/time.ts';
import { Client, clientLike, exporterOf } from './client.ts';
import type { Replica } from './destinations.ts';
import { attachAll, knowRun, orderedTimes, patchRun, postRun, recordEvent, remoteRun } from './posting.ts';
import type { Attachments, KVMap, RunCreate, RunnableConfigLike } from './types.ts';

/** Fields of a new `RunTree`. Only `name` is required. */
export interface RunTreeConfig extends RunCreate {
  parent_run?: RunTree | undefined;
  child_runs?: RunTree[] | undefined;
  metadata?: KVMap | undefined;
  /** Not recorded. */
  serialized?: object | undefined;
  client?: Client | undefined;
  /** Destinations that receive the run and its nested runs, instead of the client's. */
  replicas?: Replica[] | undefined;
  tracingEnabled?: boolean | undefined;
  on_end?: ((runTree: RunTree) => void) | undefined;
}

/** An event of a run. */
export interface RunEvent {
  name?: string;
  time?: string;
  message?: string;
  kwargs?: Record<string, unknown>;
  [key: string]: unknown;
}

/** Headers with `get` and `set` methods, for example a `Headers` object. */
export interface HeadersLike {
  get(name: string): string | null;
  set(name: string, value: string): void;
}

/** Metadata key that hides a run from LangSmith's message view. */
export const LS_MESSAGE_VIEW_EXCLUDE = 'ls_message_view_exclude';

/** Maps each run to its tree, if the program has requested the tree. */
const trees = new WeakMap<Run, RunTree>();

/**
 * A run in LangSmith's format. Set the fields of the object, then call a method to record the changes. `postRun`
 * records the start, and `patchRun` records later changes. A traced function does not need these calls. Changes to
 * `name`, `tags`, `metadata` and `outputs` are recorded when the function ends.
 */
export class RunTree {
  static #sharedClient: Client | undefined;

  id: string;
  name: string;
  run_type: string;
  project_name: string;
  parent_run: RunTree | undefined;
  parent_run_id: string | undefined;
  child_runs: RunTree[];
  start_time: number;
  end_time: number | undefined;
  extra: KVMap;
  tags: string[] | undefined;
  error: string | undefined;
  serialized: object;
  inputs: KVMap;
  outputs: KVMap | undefined;
  reference_example_id: string | undefined;
  client: Client;
  replicas: Replica[];
  events: KVMap[] | undefined;
  trace_id: string;
  dotted_order: string;
  tracingEnabled: boolean | undefined;
  attachments: Attachments | undefined;
  execution_order = 1;
  child_execution_order = 1;
  /** The recorded run, or undefined until the start is recorded. */
  #run: Run | undefined;
  /** The exporter and the fields of the context in which a root was created. */
  #around: RunContext | undefined;
  /** Whether the run belongs to a traced function, which ends it. */
  #isTraced = false;
  /** Metadata and outputs that have been recorded. */
  #recorded: { metadata?: KVMap; outputs?: KVMap | undefined } = {};

  constructor(config: RunTreeConfig | RunTree) {
    const { parent_run, client, extra, metadata, start_time, end_time } = config;
    const order = config.dotted_order === undefined ? undefined : orderedTimes(config.dotted_order);
    const own = order === undefined ? undefined : parseDottedOrder(order)?.at(-1);
    const parentUs = (parent_run && parseDottedOrder(parent_run.dotted_order)?.at(-1)?.startUs) ?? 0;
    const [givenUs, endUs] = [timestampUs(start_time), timestampUs(end_time)];
    const startUs = own?.startUs ?? Math.max(givenUs ?? clock.nowUs(), parentUs);
    this.id = config.id ?? own?.id ?? (givenUs === undefined ? newRunId(startUs) : runIdAt(startUs));
    this.name = config.name;
    this.run_type = config.run_type ?? 'chain';
    this.project_name = config.project_name ?? parent_run?.project_name ?? getDefaultProjectName();
    this.parent_run = parent_run;
    this.parent_run_id = parent_run?.id ?? config.parent_run_id;
    this.child_runs = config.child_runs ?? [];
    this.start_time = startUs / 1_000;
    this.end_time = endUs && endUs / 1_000;
    this.extra = { ...extra, metadata: { ...metadata, ...extra?.metadata } };
    this.tags = config.tags;
    this.error = config.error;
    this.serialized = config.serialized ?? {};
    this.inputs = config.inputs ?? {};
    this.outputs = config.outputs;
    this.reference_example_id = config.reference_example_id;
    this.events = config.events;
    this.client = client ?? RunTree.getSharedClient();
    // LangChain would read `LANGSMITH_RUNS_ENDPOINTS` if its parent had no list.
    this.replicas = config.replicas ?? [];
    this.trace_id = config.trace_id ?? parent_run?.trace_id ?? this.id;
    this.dotted_order = order ?? dottedOrder(parent_run?.dotted_order, startUs, this.id);
    this.tracingEnabled = config.tracingEnabled;
    // The tree may be posted in another context. A tree with a parent follows its parent.
    const isPlaced = (parent_run ?? config.parent_run_id ?? order) !== undefined;
    const around = isPlaced ? undefined : currentContext();
    if (isOff(around)) this.tracingEnabled ??= false;
    else this.#around = outsideOfRuns(around);
    this.attachments = config.attachments;
    if (#run in config) [this.#run, this.#around] = [config.#run, config.#around];
  }

  get metadata(): KVMap {
    return this.extra?.metadata ?? {};
  }

  /** Merges new metadata into the existing metadata. */
  set metadata(metadata: KVMap) {
    this.extra = { ...this.extra, metadata: { ...this.metadata, ...metadata } };
  }

  static getSharedClient(): Client {
    RunTree.#sharedClient ??= new Client();
    return RunTree.#sharedClient;
  }

  /**
   * Creates a nested run with the same metadata and project. To record the nested run's start, call `postRun` on it.
   */
  createChild(config: RunTreeConfig): RunTree {
    const { project_name, client, tracingEnabled, replicas } = this;
    const child = new RunTree({ replicas, ...config, parent_run: this, project_name, client, tracingEnabled });
    child.extra.metadata = { ...this.metadata, ...child.metadata };
    this.child_runs.push(child);
    return child;
  }

  /** Sets the outputs, error and end time, unless already set. To record these fields, call `patchRun`. */
  async end(outputs?: KVMap, error?: string, endTime: number = Date.now(), metadata?: KVMap): Promise<void> {
    this.outputs ??= outputs;
    this.error ??= error;
    this.end_time ??= endTime;
    if (metadata !== undefined) this.metadata = metadata;
  }

  /** Records the start of the run. */
  async postRun(): Promise<void> {
    guard('RunTree.postRun', () => {
      this.child_runs = [];
      if (this.#run !== undefined) return;
      const { parent_run, client, tracingEnabled, replicas } = this;
      const above = RunTree.#runOf(parent_run);
      // After a traced function ends, its tree has `tracingEnabled: false`.
      const options = above === undefined ? this : { client, replicas, tracingEnabled: tracingEnabled || undefined };
      this.#run = postRun(this.toJSON(), exporterOf(options), above, this.#around);
      trees.set(this.#run, this);
    });
  }

  /**
   * Records changed fields, but not inputs, which `postRun` records. If the run has an end time, also records the end.
   */
  async patchRun(options: { excludeInputs?: boolean } = {}): Promise<void> {
    guard('RunTree.patchRun', () => {
      this.child_runs = [];
      if (this.#isTraced) return this.#keepChanges();
      const { name, tags, extra, inputs, outputs, error, end_time } = this;
      const shown = options.excludeInputs === false ? { inputs } : {};
      return patchRun(this.id, { name, tags, extra, outputs, error, end_time, ...shown });
    });
  }

  addEvent(event: RunEvent | string): void {
    const named = typeof event === 'string' ? { name: 'event', message: event } : event;
    const timed = { time: new Date().toISOString(), ...named };
    this.events = [...(this.events ?? []), timed];
    if (this.#run !== undefined) recordEvent(this.#run, timed);
  }

  toJSON(): RunCreate & { id: string } {
    const { id, name, run_type, inputs, outputs, error, start_time, end_time, extra, tags, events } = this;
    const { parent_run_id, trace_id, dotted_order, project_name, reference_example_id, attachments } = this;
    const child_runs = this.child_runs.map((child) => child.toJSON());
    const payload = { inputs, outputs, error, extra, tags, events, attachments, child_runs };
    const place = { parent_run_id, trace_id, dotted_order, session_name: project_name, reference_example_id };
    return { id, name, run_type, start_time, end_time, ...payload, ...place };
  }

  /** Returns headers that propagate the run to another process. If `headers` is given, also sets the headers there. */
  toHeaders(headers?: HeadersLike): { 'langsmith-trace': string; baggage: string } {
    const result = { 'langsmith-trace': this.dotted_order, baggage: baggageOf(this, RunTree.#hidesMetadata(this)) };
    for (const [name, value] of Object.entries(result)) headers?.set(name, value);
    return result;
  }

  /**
   * Returns a run from another process for use as a parent. The headers contain the run's project, tags and metadata.
   * Returns undefined if the headers contain no run.
   */
  static fromHeaders(
    headers: Record<string, string | string[]> | HeadersLike,
    inheritArgs?: Partial<RunTreeConfig>,
  ): RunTree | undefined {
    const remote = fromHeaders(headers);
    if (remote === undefined) return undefined;
    const baggage = parseBaggage(headerOf(headers, 'baggage') ?? '');
    const value = (key: string): string | undefined => baggageValue(baggage, `langsmith-${key}`);
    const metadata = guard('RunTree.fromHeaders', () => JSON.parse(value('metadata') ?? '{}') as KVMap);
    const { id, traceId: trace_id, dottedOrder: dotted_order } = remote;
    const given = { metadata, tags: value('tags')?.split(','), project_name: value('project') };
    return new RunTree({ name: 'parent', ...inheritArgs, id, trace_id, dotted_order, ...given });
  }

  static fromDottedOrder(dottedOrder: string): RunTree | undefined {
    return RunTree.fromHeaders({ 'langsmith-trace': dottedOrder });
  }

  /** Returns a run below the LangChain step of a configuration, or a root run if the configuration has no step. */
  static fromRunnableConfig(config: RunnableConfigLike, props: RunTreeConfig): RunTree {
    const parent = RunTree.inConfig(config);
    const metadata = { ...config.metadata, ...props.metadata };
    return parent?.createChild({ ...props, metadata }) ?? new RunTree(props);
  }

  /** @internal Returns the tree of the LangChain step that a configuration belongs to. */
  static inConfig({ callbacks }: RunnableConfigLike): RunTree | undefined {
    const { handlers, getParentRunId } = fieldsOf(callbacks);
    if (typeof getParentRunId !== 'function') return undefined;
    const id = getParentRunId.call(callbacks);
    const run = steps.find(id)?.run;
    if (run !== undefined) return RunTree.of(run);
    const tracer = listOf(handlers).find((handler) => fieldsOf(handler).name === 'langchain_tracer');
    const step: unknown = (tracer as KVMap | undefined)?.getRun?.(id);
    if (typeof fieldsOf(step).dotted_order !== 'string') return undefined;
    return new RunTree({ ...(step as RunTree), client: clientLike((step as RunTree).client) });
  }

  /** @internal Returns the tree of a run that this process records. */
  static of(run: Run): RunTree {
    const known = trees.get(run);
    if (known !== undefined) return known;
    const { name, runType: run_type, inputs, tags, metadata, parentRunId: parent_run_id } = run;
    // LangChain's tracer records steps in the tree while the run is open.
    const tracingEnabled = run.isOpen && run.context.sampled;
    const fields = { name, run_type, inputs, tags, metadata, parent_run_id, tracingEnabled };
    const tree = new RunTree({ ...fields, ...placeIn(run.context) });
    tree.#run = run;
    tree.#isTraced = true;
    tree.#recorded = { metadata: { ...tree.metadata } };
    trees.set(run, tree);
    knowRun(run);
    run.addHooks({ onEnd: () => tree.#keepChanges(true) });
    return tree;
  }

  /** @internal Returns a tree for a run that another process records. */
  static ofContext(context: RunContext): RunTree {
    const entries = [...(context.metadata ?? [])].map(([key, json]) => [key, parseExact(json, String)] as const);
    return new RunTree({ name: 'parent', ...placeIn(context), metadata: Object.fromEntries(entries) });
  }

  /**
   * @internal Returns the metadata of a tree, by default of the current run's, that a run with these options inherits.
   *   A run inherits nothing from a run with another exporter.
   */
  static inheritedMetadata(options: Partial<RunTreeConfig>, given?: RunTree): KVMap | undefined {
    const current = currentRun();
    const tree = given ?? (current && trees.get(current));
    if (tree === undefined) return undefined;
    const sink = RunTree.#runOf(tree)?.sink;
    if (sink === undefined) return RunTree.#hidesMetadata(tree) ? undefined : tree.metadata;
    const exporter = exporterOf(options);
    return exporter === undefined || (exporter.over?.(sink) ?? exporter) === sink ? tree.metadata : undefined;
  }

  static #runOf(tree: RunTree | undefined): Run | undefined {
    // LangChain may have created the tree with LangSmith's own package.
    return tree !== undefined && #run in tree ? tree.#run : undefined;
  }

  /** Whether the client of a tree, or of a tree above, hides metadata. Trees contain the metadata of those above. */
  static #hidesMetadata(tree: RunTree | undefined): boolean {
    if (tree === undefined || !(#run in tree)) return false;
    const sink = tree.#run?.sink ?? exporterOf(tree);
    return sink?.capture.hidesMetadata === true || RunTree.#hidesMetadata(tree.parent_run);
  }

  /** @internal Sets the result of a traced function and calls `on_end`. Called when the function ends. */
  ended(onEnd: (runTree: RunTree) => void): void {
    const run = this.#run as Run;
    this.outputs = run.outputs;
    this.error = run.error;
    this.end_time = Date.now();
    this.#recorded.outputs = this.outputs;
    onEnd(this);
    this.#keepChanges();
  }

  /**
   * @internal Returns the run of a tree for use as a parent. If LangSmith's own package or another process records the
   *   run, returns a reference to it.
   */
  static parentOf(tree: RunTree): Run | RemoteRun | undefined {
    const { dotted_order, project_name, tracingEnabled } = tree;
    const shown = RunTree.#hidesMetadata(tree) ? { dotted_order, project_name, tracingEnabled } : tree;
    return RunTree.#runOf(tree) ?? remoteRun(shown);
  }

  /** Records the fields that have changed since the last recording. At the end, also the usage in the metadata. */
  #keepChanges(isEnd = false): void {
    const run = this.#run as Run;
    const { usage_metadata: usage } = this.metadata;
    // Outputs that a promise still provides are not replaced. The metadata also contains the usage.
    const shown = this.outputs ?? run.outputs;
    if (isEnd && usage !== undefined && run.error === undefined && shown !== undefined)
      this.outputs = { usage_metadata: usage, ...shown };
    const { metadata: seen = {}, outputs } = this.#recorded;
    const added = Object.entries(this.metadata).filter(([key, value]) => value !== seen[key]);
    const metadata = added.length === 0 ? undefined : Object.fromEntries(added);
    const name = this.name === run.name ? undefined : this.name;
    const changed = this.outputs === outputs ? undefined : this.outputs;
    run.set(defined({ name, tags: this.tags, metadata, outputs: changed }));
    attachAll(run, this.attachments);
    this.#recorded = { metadata: { ...this.metadata }, outputs: this.outputs };
    this.attachments = undefined;
  }
}

/** Returns whether a value is a run tree from this package or from LangSmith's package. */
export function isRunTree(value: unknown): value is RunTree {
  const { createChild, postRun } = (value ?? {}) as Partial<RunTree>;
  return typeof createChild === 'function' && typeof postRun === 'function';
}

/** Returns the default project, which applies to runs that do not specify one. */
export function getDefaultProjectName(): string {
  const project = currentSink()?.capture.project;
  return project === undefined ? 'default' : projectText(project);
}

function placeIn({ id, traceId: trace_id, dottedOrder: dotted_order, project }: RunContext): Partial<RunTreeConfig> {
  return { id, trace_id, dotted_order, project_name: project && projectText(project) };
}

/** Encodes a run's fields in LangSmith's format. Omits metadata that is hidden or cannot be encoded as JSON. */
function baggageOf({ metadata, tags = [], project_name: project }: RunTree, isHidden: boolean): string {
  const json = isHidden ? '' : guard('RunTree.toHeaders', () => JSON.stringify(metadata));
  const members = Object.entries({ metadata: json === '{}' ? '' : json, tags: tags.join(','), project });
  return members.flatMap(([key, value]) => (value ? baggageMember(`langsmith-${key}`, value).text : [])).join(',');
}
