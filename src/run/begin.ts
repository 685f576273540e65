import { guard, reportFailure } from '../base/guard.ts';
import { type EncodedPayload, encodePayload, shownName } from '../payload/serialize.ts';
import { types } from '../platform/node.ts';
import {
  belowRequest,
  type Completion,
  contextOfRoot,
  inheritedFrom,
  isOff,
  otelIdsBelow,
  type RunContext,
  sinkOf,
  spanIdsOf,
  untraced,
} from './context.ts';
import { EncodedRun } from './encoded-run.ts';
import { type Fields, withMetadata, withTags } from './fields.ts';
import type { HookedRun, RunHooks } from './hooks.ts';
import { newRunId, runIdAt } from './ids.ts';
import { captureFor, projectIn, type RunOptions, type StartOptions } from './run-options.ts';
import { type SamplingResult, sample } from './sampling.ts';
import { type CapturePolicy, noopSink, type RunSink } from './sink.ts';
import { parseDottedOrder } from './time.ts';

/** The data of a run before it starts. */
export interface RunStart<Options extends StartOptions = StartOptions> {
  readonly options: Options;
  readonly parent: RunContext | undefined;
  readonly sink: RunSink | undefined;
  readonly sampling: SamplingResult;
  readonly inputs?: EncodedPayload | undefined;
  /** The completion of the run that already records the call. The new run is then not sent itself. */
  readonly completion?: Completion | undefined;
}

/**
 * Prepares a run in the context `around`. `inputs` can be a function, which is called only if the inputs are recorded.
 * With `completion`, the inputs are encoded for the run that the new run completes.
 */
export function prepareRun(
  options: StartOptions,
  around: RunContext | undefined,
  inputs?: Fields | (() => Fields | undefined),
  completion?: Completion,
): RunStart {
  const outer = outsideOf(options, around);
  const sink = sinkFor(options, around, outer);
  const parent = options.root === true ? outer : belowRequest(outer, sink, options);
  if (options.startUs !== undefined) startAt(options, options.startUs, parent);
  const sampling = sample(options, parent, sink);
  const capture = captureFor(options, (completion ?? sink ?? noopSink).capture);
  const isCaptured = !capture.hideInputs && sampling.isSampled && parent?.refused !== true;
  const values = isCaptured && typeof inputs === 'function' ? inputs() : inputs;
  const encoded = isCaptured && values !== undefined ? encodePayload('inputs', values, capture) : undefined;
  return { options, parent, sink, sampling, inputs: encoded, completion };
}

/** Returns the context outside a run that starts in `around`. */
export function outsideOf({ root }: StartOptions, around: RunContext | undefined): RunContext | undefined {
  return root === true ? contextOfRoot(around) : around;
}

/** With `root`, a run starts a new trace but keeps the exporter from an enclosing `withExporter`. */
export function sinkFor(
  { exporter }: StartOptions,
  around: RunContext | undefined,
  outer: RunContext | undefined,
): RunSink | undefined {
  if (exporter !== undefined && exporter.over === undefined) return sinkOf(around, exporter);
  const sink = isOff(around) ? undefined : sinkOf(outer, around?.exporter);
  return sink && exporter?.over ? exporter.over(sink) : sink;
}

export function newRecord(
  options: StartOptions,
  parent: RunContext | undefined,
  sink: RunSink | undefined,
  capture: CapturePolicy,
  sampledId: string | undefined,
  startUs: number,
): EncodedRun {
  const inherited = inheritedFrom(parent, sink);
  const { tags, metadata } = sink === undefined ? NOTHING_ADDED : options;
  const above = spanIdsOf(parent);
  const record = new EncodedRun({
    id: sampledId ?? options.id?.toLowerCase() ?? newRunId(startUs),
    startUs,
    parent,
    project: projectIn(options) ?? parent?.project ?? capture.project,
    name: shownName(options.name, capture.payload),
    runType: options.runType ?? 'chain',
    tags: withTags(inherited.tags, tags, capture.payload),
    metadata: metadata === undefined ? inherited.metadata : withMetadata(inherited.metadata, metadata, capture.payload),
  });
  if (above !== undefined) record.metadata = new Map(record.metadata).set('otel', otelIdsBelow(above));
  record.referenceExampleId = options.referenceExampleId?.toLowerCase();
  return record;
}

const NOTHING_ADDED: Pick<RunOptions, 'tags' | 'metadata'> = {};

/**
 * Sets the start time and id of a run that started earlier. A run must not start before its parent, because services
 * reject such a dotted order. For example, `Date.now()` has no microseconds, so its result may be before the parent's
 * start.
 */
function startAt(options: StartOptions, startUs: number, parent: RunContext | undefined): void {
  const parentUs = parent?.dottedOrder && parseDottedOrder(parent.dottedOrder)?.at(-1)?.startUs;
  options.startUs = Math.max(startUs, parentUs || 0);
  options.id ??= runIdAt(options.startUs);
}

/** Returns a run's hooks in call order, or undefined if there are none. */
export function hooksOf(configured: RunHooks | undefined, own: RunHooks): readonly RunHooks[] | undefined {
  if (own.onStart === undefined && own.onEnd === undefined) return configured && [configured];
  return configured === undefined ? [own] : [configured, own];
}

export function callHooks(name: keyof RunHooks, hooks: readonly RunHooks[], run: HookedRun): void {
  for (const { [name]: hook } of hooks) {
    if (hook === undefined) continue;
    guard(name, () => {
      const result = untraced(hook, run);
      if (types.isPromise(result)) result.catch((error: unknown) => reportFailure(name, error));
    });
  }
}
