import { AsyncLocalStorage } from 'node:async_hooks';
import { guard } from '../base/guard.ts';
import { shared } from '../base/shared.ts';
import { CHILD_CONFIG } from '../integrations/langchain/steps.ts';
import { currentContext } from '../run/context/current.ts';
import { sinkOf } from '../run/context/inherited.ts';
import { withAddedFields } from '../run/propagation/propagation.ts';
import { currentRun, withRun } from '../run/start-run.ts';
import { remoteRun } from './posting.ts';
import { isRunTree, RunTree } from './run-tree.ts';
import type { AnyFunction, KVMap } from './types.ts';

/** Key of the storage in which LangChain and LangSmith's own package keep the current run. */
const KEY = Symbol.for('ls:tracing_async_local_storage');
/** Key of LangChain's context variables, which nested stores inherit. */
const VARIABLES = Symbol.for('lc:context_variables');

interface Store {
  readonly tracingEnabled?: unknown;
  readonly extra?: object;
  readonly [VARIABLES]?: unknown;
}

const state: { getStore: (() => Store | undefined) | undefined } = shared('langsmithStorage', () => ({
  getStore: undefined,
}));

/**
 * Makes the current run visible to LangChain. LangChain's tracer then records steps as children of the run, using the
 * run's client. Patching the storage once costs nothing in programs without LangChain, unlike entering the storage for
 * each call.
 */
export function shareCurrentRun(): void {
  if (state.getStore !== undefined) return;
  const holder = globalThis as { [KEY]?: { getStore(): Store | undefined } };
  holder[KEY] ??= new AsyncLocalStorage<Store>();
  const storage = holder[KEY];
  const getStore = storage.getStore.bind(storage);
  state.getStore = getStore;
  storage.getStore = () => guard('langsmith storage', currentStore) ?? getStore();
}

/** Returns LangChain's current step or the current run, whichever is nested deeper. */
function currentStore(): Store | undefined {
  const store = state.getStore?.();
  if (isUntraced()) return offStore(store);
  const run = currentRun();
  if (run === undefined || stepIn(store) !== undefined) return store;
  const tree: RunTree & Store = RunTree.of(run);
  // All contexts of a run share one tree. Each context therefore sets both values, even to undefined.
  Reflect.set(tree.extra, CHILD_CONFIG, configBelow(tree, Reflect.get(store?.extra ?? {}, CHILD_CONFIG)));
  return Object.assign(tree, { [VARIABLES]: store?.[VARIABLES] });
}

/** Returns a step's configuration for steps below `tree`. Without the step's tracer, LangChain adds one that knows `tree`. */
function configBelow(tree: RunTree, config: { callbacks?: KVMap } | undefined): unknown {
  const callbacks: KVMap | undefined = config?.callbacks?.copy?.();
  if (callbacks === undefined) return config;
  for (const handler of callbacks.handlers) if (handler.name === 'langchain_tracer') callbacks.removeHandler(handler);
  return { ...config, callbacks: Object.assign(callbacks, { _parentRunId: tree.id }) };
}

/** Whether nothing is recorded in the current context: tracing is off, or the trace is left out. */
function isUntraced(): boolean {
  const context = currentContext();
  return context?.sampled === false || sinkOf(context) === undefined;
}

/**
 * Returns a tree that tells LangChain not to trace. Without it, LangChain would follow `LANGSMITH_TRACING`. The tree keeps
 * LangChain's configuration, which steps inherit.
 */
function offStore(store: Store = {}): Store {
  if (store.tracingEnabled === false) return store;
  const tree: RunTree & Store = new RunTree({ name: 'untraced', tracingEnabled: false });
  const { extra, [VARIABLES]: variables } = store;
  return Object.assign(tree, extra && { extra }, variables !== undefined && { [VARIABLES]: variables });
}

/** Returns LangChain's current step if LangChain records the step and the step is inside the current run. */
function stepIn(store: Store | undefined): RunTree | undefined {
  if (!isRunTree(store) || store.tracingEnabled !== true || isUntraced()) return undefined;
  const run = currentRun();
  return run === undefined || store.dotted_order.includes(run.id) ? store : undefined;
}

/** Calls `fn` inside LangChain's current step, if the current run contains such a step. */
export function inStep<Result>(fn: () => Result): Result {
  const step = stepIn(state.getStore?.());
  return step === undefined ? fn() : withRun(remoteRun(step), fn);
}

/**
 * Returns the tree of the current run. If there is no current run, throws an error, or returns undefined if
 * `permitAbsent` is true. While tracing is off, returns a tree that records nothing.
 */
export function getCurrentRunTree(permitAbsent?: false): RunTree;
export function getCurrentRunTree(permitAbsent: boolean): RunTree | undefined;
export function getCurrentRunTree(permitAbsent: boolean = false): RunTree | undefined {
  const step = stepIn(state.getStore?.());
  if (step !== undefined) return step;
  const run = currentRun();
  if (run !== undefined) return RunTree.of(run);
  const context = currentContext();
  if (context?.id !== undefined) return RunTree.ofContext(withAddedFields(context));
  if (permitAbsent) return undefined;
  if (isUntraced()) return new RunTree({ name: 'untraced', tracingEnabled: false });
  throw new Error(
    'Could not get the current run tree.\n\nPlease make sure you are calling this method within a traceable function and that tracing is enabled.',
  );
}

/** Calls `fn` with `runTree` as the current run. The result is always a promise. */
export async function withRunTree<Fn extends AnyFunction>(runTree: RunTree, fn: Fn): Promise<Awaited<ReturnType<Fn>>> {
  return withRun(RunTree.parentOf(runTree), () => fn());
}

/** Returns whether runs are recorded: an endpoint is set, and tracing is on in the current context. */
export function isTracingEnabled(tracingEnabled?: boolean): boolean {
  return tracingEnabled ?? !isUntraced();
}
