import { guard, ignoreRejection } from '../base/guard.ts';
import { type PlanOptions, userValue } from '../instrument/plan.ts';
import { followInputs, unreadIn } from '../instrument/results/inputs.ts';
import { shapedLike, tracedBy } from '../instrument/traceable.ts';
import { fieldsOf, isPlainObject, put } from '../payload/fields.ts';
import { LateValue } from '../run/late-content.ts';
import type { CallDescription, Run } from '../run/run.ts';
import { commonChecks, type RunOptions, usableOptions } from '../run/run-options.ts';
import { withRun } from '../run/start-run.ts';
import { exporterOf } from './client.ts';
import { attachAll } from './posting.ts';
import { isRunTree, RunTree, type RunTreeConfig } from './run-tree.ts';
import { getCurrentRunTree, inStep, shareCurrentRun } from './storage.ts';
import type { AnyFunction, Attachments, KVMap, RunnableConfigLike } from './types.ts';

/** Pass `ROOT` as the first argument of a traced function to start a new trace. */
export const ROOT: unique symbol = Symbol.for('langsmith:traceable:root');

/** Type of the inputs that `processInputs` receives for a function's arguments. */
export type ProcessInputs<Args extends unknown[]> = Args extends []
  ? Record<string, never>
  : Args extends [infer Input]
    ? Input extends KVMap
      ? Input extends Iterable<infer Item> | AsyncIterable<infer Item>
        ? { input: Item[] }
        : Input
      : { input: Input }
    : { args: Args };

/** Type of the outputs that `processOutputs` receives for a function's result. */
export type ProcessOutputs<Result> = Result extends KVMap
  ? Result extends Iterable<infer Item> | AsyncIterable<infer Item>
    ? { outputs: Item[] }
    : Result
  : { outputs: Result };

/** Options of `traceable`, which have the same names and meanings as in LangSmith. All options are optional. */
export type TraceableConfig<Func extends AnyFunction> = Partial<Omit<RunTreeConfig, 'inputs' | 'outputs'>> & {
  /**
   * Combines the chunks from a generator or stream into the outputs to record. The function must not return a promise.
   */
  aggregator?: (chunks: Parameters<AnyFunction>) => unknown;
  /**
   * Position of the argument that contains the call's options. A second element names the property in that argument.
   */
  argsConfigPath?: [number] | [number, string];
  on_start?: (runTree: RunTree | undefined) => void;
  /** Name of the property in the result that contains the stream to record. */
  __finalTracedIteratorKey?: string;
  extractAttachments?: (...args: Parameters<Func>) => [Attachments | undefined, KVMap];
  /** Returns metadata about a model call, for example `ls_model_name`. */
  getInvocationParams?: (...args: Parameters<Func>) => KVMap | undefined;
  /**
   * Returns the inputs to record, or a promise of them. The function receives copies of plain objects and arrays. The
   * traced call does not wait for the promise. If the function throws, a placeholder is recorded instead. If the promise
   * rejects, or has not settled 1 s after the run's end or when the process ends, nothing is recorded. If an argument is
   * a stream, an iterator or a promise, the function is called when the run ends, with what was read.
   */
  processInputs?: (inputs: Readonly<ProcessInputs<Parameters<Func>>>) => KVMap | Promise<KVMap>;
  /** Like `processInputs`, for the outputs. */
  processOutputs?: (outputs: Readonly<ProcessOutputs<Awaited<ReturnType<Func>>>>) => KVMap | Promise<KVMap>;
};

/** Result type of a traced function: a promise, unless the function returns an async iterable. */
export type SmartPromise<Result> = Result extends AsyncIterable<unknown> | Promise<unknown> ? Result : Promise<Result>;

/** A signature of a traced function. The first argument may be a run tree or a LangChain configuration. */
export type TraceableSignature<Args extends unknown[], Result> = Args extends [RunTree, ...infer Rest]
  ? {
      (runTree: RunTree | typeof ROOT, ...args: Rest): SmartPromise<Result>;
      (config: RunnableConfigLike, ...args: Rest): SmartPromise<Result>;
    }
  : {
      (...args: Args): SmartPromise<Result>;
      (runTree: RunTree | typeof ROOT, ...args: Args): SmartPromise<Result>;
      (config: RunnableConfigLike, ...args: Args): SmartPromise<Result>;
    };

/** Converts a union of types to their intersection. */
export type UnionToIntersection<Union> = (Union extends unknown ? (value: Union) => void : never) extends (
  value: infer All,
) => void
  ? All
  : never;

/** Signatures of a traced function with up to four overloads. */
export type Overloads<Func> = Func extends {
  (...args: infer A1): infer R1;
  (...args: infer A2): infer R2;
  (...args: infer A3): infer R3;
  (...args: infer A4): infer R4;
}
  ? TraceableSignature<A1, R1> | TraceableSignature<A2, R2> | TraceableSignature<A3, R3> | TraceableSignature<A4, R4>
  : never;

/** A traced function. The result is a promise, unless the function returns an async iterable. */
export type TraceableFunction<Func extends AnyFunction> = UnionToIntersection<Overloads<Func>> & {
  [Key in keyof Func]: Func[Key];
};

type Config = Partial<RunTreeConfig> & Omit<TraceableConfig<AnyFunction>, keyof RunTreeConfig>;

const MARK = 'langsmith:traceable';

/**
 * Wraps a function to record a run for each call, using the options of LangSmith's `traceable`. The traced function
 * returns a promise, unless `wrappedFunc` returns an async iterable. To set the run's parent, pass a `RunTree`, `ROOT`
 * or LangChain's call configuration as the first argument.
 */
export function traceable<Func extends AnyFunction>(
  wrappedFunc: Func,
  config?: TraceableConfig<Func>,
): TraceableFunction<Func> {
  shareCurrentRun();
  const options = (config ?? {}) as Config;
  const traced = tracedWith(wrappedFunc, options);
  function wrapper(this: unknown, ...args: unknown[]): unknown {
    const call = guard('traceable', () => callOf(args, options)) ?? { args };
    const run = (): unknown => {
      const fn = guard('traceable', () => tracedForCall(wrappedFunc, options, call)) ?? traced;
      return Reflect.apply(fn, this, call.args);
    };
    try {
      return promised(
        'parent' in call ? withRun(call.parent && RunTree.parentOf(call.parent), run) : inStep(run),
        options,
      );
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }
  const shown = shapedLike(wrapper, wrappedFunc);
  // The property must be configurable, because tracing the function again copies and then redefines the property.
  Object.defineProperty(shown, MARK, { value: options, configurable: true });
  return shown as unknown as TraceableFunction<Func>;
}

/** Returns whether a value is a function that `traceable` returned. */
export function isTraceableFunction(value: unknown): value is TraceableFunction<AnyFunction> {
  return typeof value === 'function' && MARK in value;
}

/** Returns whether a value is LangChain's configuration for a traced call. */
export function isRunnableConfigLike(value: unknown): value is RunnableConfigLike {
  const { callbacks } = fieldsOf(value);
  const handlers: unknown = Array.isArray(callbacks) ? callbacks : fieldsOf(callbacks).handlers;
  return Array.isArray(handlers) && handlers.some((handler) => TRACERS.includes(fieldsOf(handler).name));
}

const TRACERS: readonly unknown[] = ['langchain_tracer', 'runspan_callback_handler'];

/** A call to a traced function, read from its arguments. */
interface Call {
  readonly args: unknown[];
  readonly config?: Config;
  /** Whether to pass the run's tree to the function as the first argument. */
  readonly treeFirst?: boolean;
  /** Parent of the run. An undefined parent starts a new trace. */
  readonly parent?: RunTree | undefined;
}

function callOf(given: unknown[], options: Config): Call {
  const { args, config } = withoutConfig(given, options.argsConfigPath);
  const tags = [...new Set([...(options.tags ?? []), ...(config?.tags ?? [])])];
  const own = config === undefined ? {} : { config: { ...config, tags } };
  const [first, ...rest] = args;
  if (first === ROOT) return { ...own, args: rest, treeFirst: true, parent: undefined };
  if (isRunTree(first)) return { ...own, args: rest, treeFirst: true, parent: first };
  if (!isRunnableConfigLike(first)) return { ...own, args };
  const parent = RunTree.inConfig(first);
  return parent === undefined ? { ...own, args: rest } : { ...own, args: rest, parent };
}

/** Separates the call's LangSmith options from its arguments. `path` is the position of the options. */
function withoutConfig(given: unknown[], path: Config['argsConfigPath']): { args: unknown[]; config?: Config } {
  if (path === undefined) return { args: given };
  const [at, key] = path;
  const holder = given[at];
  if (typeof holder !== 'object' || holder === null) return { args: given };
  if (key === undefined) return { args: given.toSpliced(at, 1), config: holder as Config };
  const { [key]: config, ...rest } = holder as Record<string, unknown>;
  return config === undefined ? { args: given } : { args: given.with(at, rest), config: config as Config };
}

/** Returns a traced function for a call with its own options, or undefined if the call has no options. */
function tracedForCall(fn: AnyFunction, options: Config, { config, parent, ...call }: Call): AnyFunction | undefined {
  const { treeFirst = false } = call;
  // A run inherits metadata that the program has added to the parent's tree.
  const isRoot = treeFirst && parent === undefined;
  const given = treeFirst ? parent : undefined;
  const inherited = isRoot ? undefined : RunTree.inheritedMetadata({ ...options, ...config }, given);
  if (config === undefined && !treeFirst && inherited === undefined) return undefined;
  const merged = { ...options, ...config, metadata: { ...inherited, ...options.metadata, ...config?.metadata } };
  return tracedWith(treeFirst ? withTree(fn) : fn, merged, isRoot);
}

function withTree(fn: AnyFunction): AnyFunction {
  return shapedLike(function (this: unknown, ...args: unknown[]): unknown {
    return Reflect.apply(fn, this, [getCurrentRunTree(), ...args]);
  }, fn);
}

/** Wraps `result` in a promise, unless `result` is a promise or async iterable, or contains the stream to record. */
function promised(result: unknown, { __finalTracedIteratorKey: key }: Config): unknown {
  if (typeof result !== 'object' || result === null) return Promise.resolve(result);
  if (typeof Reflect.get(result, 'then') === 'function' || Symbol.asyncIterator in result) return result;
  return key !== undefined && key in result ? result : Promise.resolve(result);
}

function tracedWith(fn: AnyFunction, config: Config, root = false): AnyFunction {
  return tracedBy(planOf({ ...config, name: config.name ?? (fn.name || '<lambda>') }, root), fn);
}

/** Converts LangSmith's options to the options of a traced function. */
export function planOf(config: Config & { name: string }, root = false): PlanOptions {
  const { aggregator, processOutputs, on_end, on_start, __finalTracedIteratorKey: key } = config;
  const common = usableOptions<Omit<RunOptions, 'inputs' | 'startTime'>>(
    'traceable',
    {
      name: config.name,
      runType: config.run_type,
      metadata: { ...config.metadata, ...config.extra?.metadata },
      project: config.project_name,
      id: config.id,
      referenceExampleId: config.reference_example_id,
      exporter: exporterOf(config),
      root,
      onStart: on_start && ((run: unknown) => on_start(RunTree.of(run as Run))),
      onEnd: on_end && ((run: unknown) => RunTree.of(run as Run).ended(on_end)),
    },
    commonChecks,
  );
  return {
    ...common,
    isLangSmith: true,
    name: common.name ?? '<lambda>',
    describe: (args) => describe(args, config),
    outputs: (value) => outputsOf(value, processOutputs as ProcessFunction | undefined),
    ...(aggregator && { aggregate: aggregator as (chunks: unknown[]) => unknown }),
    ...(key !== undefined && { stream: (result: unknown) => fieldsOf(result)[key] }),
  };
}

function describe(args: unknown[], config: Config & { name: string }): CallDescription {
  const { extractAttachments, getInvocationParams, processInputs, tags } = config;
  const extracted = extractAttachments && guard('extractAttachments', () => extractAttachments(...args));
  const [attachments, inputs] = extracted ?? [undefined, inputsOf(args)];
  const unread = guard('traceable', () => unreadIn(inputs));
  const read = unread?.size ? readInputs(copied(inputs, new Map(unread)), config) : undefined;
  // `processInputs` is called once, with what was read.
  const shown = read === undefined ? shownInputs(inputs, config) : processInputs === undefined ? inputs : {};
  const late = LateValue.is(shown) ? shown : undefined;
  return {
    inputs: (late === undefined ? shown : {}) as KVMap,
    metadata: guard('getInvocationParams', () => getInvocationParams?.(...args)) ?? {},
    started(run) {
      // Set tags after the start, because nested runs inherit tags that are set at the start.
      if (tags !== undefined) run.set({ tags });
      attachAll(run, attachments);
      if (late !== undefined) run.keepLate('inputs', late);
      if (unread !== undefined && read !== undefined) followInputs(run, unread, read);
    },
  };
}

/** Returns a function for `followInputs`. A closure in `describe` would keep the streams in memory. */
function readInputs(inputs: unknown, config: Config & { name: string }): (read: Map<unknown, unknown>) => unknown {
  return (read) => shownInputs(copied(inputs, read) as KVMap, config);
}

function shownInputs(inputs: KVMap, { name, processInputs }: Config & { name: string }): unknown {
  const process = processInputs as ProcessFunction | undefined;
  return process === undefined ? inputs : userValue('inputs', name, (it) => processed('Inputs', process, it), inputs);
}

type ProcessFunction = (values: KVMap) => unknown;

function processed(what: 'Inputs' | 'Outputs', process: ProcessFunction, values: KVMap): unknown {
  const result = process(copied(values) as KVMap);
  if (typeof fieldsOf(result).then !== 'function') return result;
  // If the run is not recorded, nothing else handles the rejection.
  ignoreRejection(result);
  return new LateValue(`process${what}`, result as PromiseLike<unknown>);
}

/** Copies plain objects and arrays, so that a function that changes its argument does not change the application's. */
function copied(value: unknown, copies = new Map<unknown, unknown>()): unknown {
  if (copies.has(value)) return copies.get(value);
  if (!isPlainObject(value) && !Array.isArray(value)) return value;
  const copy: object = Array.isArray(value) ? [] : {};
  copies.set(value, copy);
  for (const key of Object.keys(value)) put(copy, key, copied(Reflect.get(value, key), copies));
  return copy;
}

/** Returns the inputs to record for a call. The inputs do not depend on the number of declared parameters. */
function inputsOf(args: unknown[]): KVMap {
  const [first] = args;
  if (first === null) return { inputs: null };
  if (first === undefined) return {};
  if (args.length > 1) return { args };
  return isKVMap(first) ? first : { input: first };
}

function outputsOf(value: unknown, processOutputs: ProcessFunction | undefined): unknown {
  const outputs = isKVMap(value) ? { ...value } : { outputs: value };
  return processOutputs === undefined ? outputs : processed('Outputs', processOutputs, outputs);
}

function isKVMap(value: unknown): value is KVMap {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain && ![Symbol.toStringTag, Symbol.iterator, Symbol.asyncIterator].some((key) => key in value);
}
