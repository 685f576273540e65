import { guard, reportFailure } from '../base/guard.ts';
import { shownName } from '../payload/serialize.ts';
import { types } from '../platform/node.ts';
import { contextOfRoot, inheritedFrom, type RunContext, sinkOf, untraced } from './context.ts';
import { EncodedRun } from './encoded-run.ts';
import { withMetadata, withTags } from './fields.ts';
import type { HookedRun, RunHooks } from './hooks.ts';
import { newRunId, runIdAt } from './ids.ts';
import { projectIn, type RunOptions, type StartOptions } from './run-options.ts';
import type { CapturePolicy, RunSink } from './sink.ts';
import { parseDottedOrder, type Timestamp, timestampUs } from './time.ts';

/**
 * Returns the context outside a run, and the sink that records the run. With `root`, a run starts a new trace but keeps
 * the exporter from an enclosing `withExporter`.
 */
export function outsideOf(
  { exporter, root }: Pick<RunOptions, 'exporter' | 'root'>,
  around: RunContext | undefined,
): { readonly outer: RunContext | undefined; readonly sink: RunSink | undefined } {
  const outer = root === true ? contextOfRoot(around) : around;
  return { outer, sink: exporter ?? around?.exporter ?? sinkOf(outer) };
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
export function startAt(options: StartOptions, startTime: Timestamp, parent: RunContext | undefined): void {
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
