import { guard, reportFailure } from '../base/guard.ts';
import { type EncodedPayload, encodePayload, shownName } from '../payload/serialize.ts';
import { types } from '../platform/node.ts';
import type { CallStart } from './calls/calls.ts';
import { isCallType } from './calls/same-call.ts';
import type { RunContext, RunOwner } from './context/context.ts';
import { untraced } from './context/current.ts';
import { inheritedFrom, otelIdsBelow, spanIdsOf } from './context/inherited.ts';
import { placement } from './context/placement.ts';
import { EncodedRun } from './encoded-run.ts';
import { type Fields, withMetadata, withTags } from './fields.ts';
import type { HookedRun, RunHooks } from './hooks.ts';
import { newRunId, runIdAt } from './ids.ts';
import { captureFor, hiddenByEither, type RunOptions, type StartOptions } from './run-options.ts';
import { type SamplingResult, sample } from './sampling/sampling.ts';
import { type CapturePolicy, noopSink, type RunSink } from './sink.ts';
import { parseDottedOrder } from './time.ts';

/** The span that a run records. It owns the context of the run, and fills the record. */
export interface SpanOwner extends RunOwner {
  /** Passes the record of the new run to its sink. Returns false if the sink refuses it. */
  pass(record: EncodedRun, run: HookedRun): boolean;
  /** Takes the record of a new run that is measured, but not sent. */
  setRecord(record: EncodedRun, run: HookedRun): void;
}

export interface RunStart<Options extends StartOptions = StartOptions> {
  readonly options: Options;
  readonly parent: RunContext | undefined;
  readonly sink: RunSink | undefined;
  readonly sampling: SamplingResult;
  readonly capture: CapturePolicy;
  readonly inputs?: EncodedPayload | undefined;
  /** What an integration knows of the call that the run records. Undefined for a run of the application itself. */
  readonly call?: CallStart | undefined;
  readonly span?: SpanOwner | undefined;
  /** Whether the application, or a library that it uses, has chosen the id. */
  readonly isIdGiven?: boolean;
}

/** Prepares a run in the context `around`. `inputs` can be a function, which is called only if the inputs are recorded. */
export function prepareRun(
  options: StartOptions,
  around: RunContext | undefined,
  inputs?: Fields | (() => Fields | undefined),
  call?: CallStart,
): RunStart {
  const isIdGiven = options.id !== undefined;
  const { parent, sink } = placement(options, around);
  if (options.startUs !== undefined) startAt(options, options.startUs, parent);
  const sampling = sample(options, parent, sink);
  const capture = captureIn(options, parent, sink, call !== undefined);
  const isCaptured = !capture.hideInputs && sampling.isSampled && parent?.refused !== true;
  const values = isCaptured && typeof inputs === 'function' ? inputs() : inputs;
  const encoded =
    isCaptured && values !== undefined
      ? encodePayload('inputs', values, policyOf(capture, sampling.hold !== undefined))
      : undefined;
  return { options, parent, sink, sampling, capture, inputs: encoded, call, isIdGiven };
}

/** Returns what a run records. If a call above hides payloads, only the application's own functions still record them. */
export function captureIn(
  options: StartOptions,
  parent: RunContext | undefined,
  sink: RunSink | undefined,
  isOfIntegration: boolean,
): CapturePolicy {
  const above = isOfIntegration || isCallType(options.runType) ? parent?.hiding : undefined;
  const hiding = hiddenByEither(options.hiding, above);
  return captureFor(hiding === undefined ? options : { ...options, ...hiding }, (sink ?? noopSink).capture);
}

/** Returns what a run records. Payloads of a held run are encoded only if the run is sent. */
export function policyOf(capture: CapturePolicy, isHeld: boolean): CapturePolicy {
  return isHeld ? { ...capture, isLazy: true } : capture;
}

export function newEncodedRun(start: RunStart, startUs: number): EncodedRun {
  const { options, parent, sink, sampling, capture, span } = start;
  const inherited = inheritedFrom(parent, sink);
  const { tags, metadata } = sink === undefined ? NOTHING_ADDED : options;
  const above = span === undefined ? spanIdsOf(parent) : undefined;
  const record = new EncodedRun({
    id: sampling.id ?? options.id?.toLowerCase() ?? newRunId(startUs),
    startUs,
    parent,
    project: options.project ?? parent?.project ?? capture.project,
    name: shownName(options.name, capture.payload),
    runType: options.runType ?? 'chain',
    tags: withTags(inherited.tags, tags, capture.payload),
    metadata: metadata === undefined ? inherited.metadata : withMetadata(inherited.metadata, metadata, capture.payload),
  });
  record.isIdGiven = start.isIdGiven === true;
  record.held = sampling.hold?.();
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
