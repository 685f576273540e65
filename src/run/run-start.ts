import { guard, reportFailure } from '../base/guard.ts';
import { type EncodedPayload, encodePayload, shownName } from '../payload/serialize.ts';
import { types } from '../platform/node.ts';
import {
  belowRequest,
  type Completion,
  contextOfRoot,
  inheritedFrom,
  type RunContext,
  sinkOf,
  untraced,
} from './context.ts';
import { EncodedRun } from './encoded-run.ts';
import { withMetadata, withTags } from './fields.ts';
import type { HookedRun, RunHooks } from './hooks.ts';
import { newRunId, runIdAt } from './ids.ts';
import { projectIn, type RunOptions, runOptionChecks, type StartOptions, usableOptions } from './run-options.ts';
import { type SamplingResult, sample } from './sampling.ts';
import { type CapturePolicy, noopSink, type RunSink } from './sink.ts';
import { parseDottedOrder, type Timestamp, timestampUs } from './time.ts';

export interface RunStart {
  readonly options: StartOptions;
  readonly parent: RunContext | undefined;
  readonly sink: RunSink | undefined;
  readonly inputs: EncodedPayload | undefined;
  readonly sampling: SamplingResult;
}

/** Returns the context in which a run starts. `exporter` is the run's own exporter, if any. */
export type ContextFor = (exporter: RunSink | undefined) => RunContext | undefined;

/**
 * With `root`, a run starts a new trace but keeps the exporter from an enclosing `withExporter`. With `completion`, the
 * inputs are encoded for another run, which the run completes.
 */
export function prepareRun(
  place: string,
  given: RunOptions,
  contextFor: ContextFor,
  completion?: Completion,
): RunStart {
  const { name = 'run', inputs, startTime, ...others } = usableOptions<RunOptions>(place, given, runOptionChecks);
  const options: StartOptions = { ...others, name };
  const around = contextFor(options.exporter);
  const outer = options.root === true ? contextOfRoot(around) : around;
  const sink = options.exporter ?? around?.exporter ?? sinkOf(outer);
  const parent = options.root === true ? outer : belowRequest(outer, sink, options);
  if (startTime !== undefined) startAt(options, startTime, parent);
  const sampling = sample(options, parent, sink);
  const { capture } = completion ?? sink ?? noopSink;
  const isHidden = capture.hideInputs || options.hideInputs === true;
  const isCaptured = inputs !== undefined && !isHidden && sampling.isKept && parent?.refused !== true;
  return {
    options,
    parent,
    sink,
    sampling,
    inputs: isCaptured ? encodePayload('inputs', inputs, capture) : undefined,
  };
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
  record.referenceExampleId = options.referenceExampleId?.toLowerCase();
  return record;
}

const NOTHING_ADDED: Pick<RunOptions, 'tags' | 'metadata'> = {};

/**
 * Sets the start time and id of a run that started earlier. A run must not start before its parent, because services
 * reject such a dotted order. For example, `Date.now()` has no microseconds, so its result may be before the parent's
 * start.
 */
function startAt(options: StartOptions, startTime: Timestamp, parent: RunContext | undefined): void {
  const parentUs = parent?.dottedOrder && parseDottedOrder(parent.dottedOrder)?.at(-1)?.startUs;
  options.startUs = Math.max(timestampUs(startTime) ?? 0, parentUs || 0);
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
