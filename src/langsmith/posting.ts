import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { shared } from '../base/shared.ts';
import { newState, type Step, steps } from '../integrations/langchain/steps.ts';
import { defined, isPlainObject } from '../payload/fields.ts';
import { contextWith, type RunContext, rootContext } from '../run/context/context.ts';
import { newRunId, runIdAt } from '../run/ids.ts';
import { RemoteRun } from '../run/propagation/propagation.ts';
import { type Run, startRunIn } from '../run/run.ts';
import { currentSink, noopSink, type RunSink } from '../run/sink.ts';
import { dottedOrder, parseDottedOrder, timestampUs } from '../run/time.ts';
import type { Attachments, KVMap, RunCreate } from './types.ts';

/** The runs of traced functions whose tree LangChain or the program has. They may be in its queue after they have ended. */
const traced: Map<string, WeakRef<Run>> = shared('langsmithTraced', () => new Map());
const forgotten = new FinalizationRegistry<string>((id) => traced.delete(id));

/** Posts of runs below a traced function's run then follow the run, although they contain only ids. */
export function knowRun(run: Run): void {
  traced.set(run.id, new WeakRef(run));
  forgotten.register(run, run.id);
}

/**
 * Records the start of a run. If `create` has an end time, also records the end. The current context is not used, because
 * LangChain posts runs from a queue, whose context is that of any earlier call. A root is recorded in `around`.
 */
export function postRun(create: RunCreate, exporter: RunSink | undefined, parent?: Run, around?: RunContext): Run {
  const { name, inputs, extra, ...changes } = create;
  const { id, start_time, dotted_order, parent_run_id } = changes;
  const own = dotted_order === undefined ? undefined : parseDottedOrder(dotted_order)?.at(-1);
  const orderAbove = dotted_order?.replace(/\.?[^.]*$/, '');
  const above = parent?.context ?? steps.below(parent_run_id) ?? contextBelow(orderAbove);
  const options = defined({
    runType: create.run_type,
    id: id ?? own?.id,
    inputs: plain(inputs),
    startTime: own === undefined ? start_time : own.startUs / 1_000,
    metadata: extra?.metadata as KVMap | undefined,
    project: create.session_name ?? create.project_name,
    referenceExampleId: create.reference_example_id,
    exporter,
    root: above === undefined,
  });
  const run = startRunIn('startRun', { ...options, name }, above ?? around ?? rootContext, { isLangSmith: true });
  // Set tags after the start, because nested runs inherit tags that are set at the start.
  update(keep(run.id, run), changes);
  return run;
}

/** Returns the context below a dotted order. The nearest run of a traced function in it decides on the sink. */
function contextBelow(order: string | undefined): RunContext | undefined {
  const ids = parseDottedOrder(order ?? '')?.map(({ id }) => id) ?? [];
  const nearest = ids.map((id) => traced.get(id)?.deref()).findLast((run) => run !== undefined);
  if (nearest?.context.sampled === false) return nearest.context;
  const remote = remoteRun({ dotted_order: order });
  const context = remote?.contextFor(nearest?.sink ?? currentSink() ?? noopSink);
  const fields = nearest?.context.fields;
  return context && fields ? contextWith(fields, context) : context;
}

/** Records the start of a run, unless the `runspan/langchain` handler records it for the same service. */
export function postOnce(create: RunCreate, exporter: RunSink | undefined): void {
  const { id = '' } = create;
  const sink = steps.find(id, exporter)?.run?.sink;
  const isOther = exporter !== undefined && exporter.over === undefined && exporter !== sink;
  if (isOther || !steps.has(id)) postRun(create, exporter);
  else keep(id, undefined);
}

/** Without a run, changes of the step are ignored. */
function keep(id: string, run: Run | undefined): Step {
  return steps.add({ id, run, below: run?.context, state: newState({}) });
}

/** Records changes to a posted run. If the changes contain an end time or an error, the run ends. */
export function patchRun(id: string, changes: Partial<RunCreate>): void {
  const posted = steps.all(id).filter(({ state }) => state.handler === undefined);
  for (const step of posted) update(step, changes);
  if (posted.length > 0) return;
  diagnostics.warnOnce(
    'updateRun',
    'updateRun: expected the id of a run that this process created and has not ended; the change is not recorded.',
  );
}

function update(posted: Step, changes: Partial<RunCreate>): void {
  const { error = null, end_time } = changes;
  change(posted, changes);
  if ((error ?? end_time ?? undefined) === undefined) return;
  const options = defined({ endTime: end_time ?? undefined });
  steps.end(posted, ({ run }) => (error === null ? run?.end(undefined, options) : run?.fail(error, options)));
}

function change({ run, state }: Step, changes: Partial<RunCreate>): void {
  if (run === undefined) return;
  const { name, tags, extra, inputs, outputs, events = [], attachments } = changes;
  const metadata = extra?.metadata as KVMap | undefined;
  run.set(defined({ name, tags, metadata, inputs: plain(inputs), outputs: plain(outputs) }));
  for (const event of events.slice(state.events)) recordEvent(run, event);
  state.events = Math.max(state.events, events.length);
  attachAll(run, attachments);
}

/**
 * Converts a class instance such as a LangChain message to a plain object. Otherwise the instance would be recorded
 * under an extra key.
 */
function plain(payload: KVMap | undefined): KVMap | undefined {
  if (payload === undefined || payload === null || isPlainObject(payload)) return payload ?? undefined;
  return typeof payload.toJSON === 'function' ? payload.toJSON() : { ...payload };
}

export function recordEvent(run: Run, { name, ...data }: KVMap): void {
  run.event(typeof name === 'string' ? name : 'event', data);
}

export function attachAll(run: Run, attachments: Attachments | undefined): void {
  for (const [name, attachment] of Object.entries(attachments ?? {})) {
    const [mimeType, data] = Array.isArray(attachment) ? attachment : [attachment.mimeType, attachment.data];
    run.attach(name, data instanceof ArrayBuffer ? new Uint8Array(data) : data, mimeType);
  }
}

/**
 * Returns a run that LangSmith's package or another process records, for use as a parent. Nested runs inherit the project
 * and metadata, and belong to the trace of a known run above.
 */
export function remoteRun(fields: {
  readonly dotted_order?: string | undefined;
  readonly project_name?: string | undefined;
  readonly metadata?: KVMap | undefined;
  readonly tracingEnabled?: boolean | undefined;
}): RemoteRun | undefined {
  const { dotted_order: given = '', project_name: project, metadata, tracingEnabled } = fields;
  const order = orderedTimes(given);
  const segments = parseDottedOrder(order) ?? [];
  const [first, last] = [segments.at(0), segments.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const contexts = segments.map(({ id }) => traced.get(id)?.deref()?.context ?? steps.below(id));
  const known = contexts.findLast((context) => context !== undefined);
  const sampled = tracingEnabled !== false && known?.sampled !== false;
  return new RemoteRun(order, [first.id, last.id], { project, metadata, tags: undefined, sampled, held: known?.held });
}

/**
 * Returns a dotted order in which no run starts before its parent. LangChain and LangSmith measure time in
 * milliseconds, so a nested run may seem to start before a runspan parent.
 */
export function orderedTimes(order: string): string {
  let earliestUs = 0;
  let result: string | undefined;
  for (const { startUs, id } of parseDottedOrder(order) ?? []) {
    earliestUs = Math.max(earliestUs, startUs);
    result = dottedOrder(result, earliestUs, id);
  }
  return result ?? order;
}

/** Returns a new UUIDv7. */
export function uuid7(): string {
  return newRunId(clock.nowUs());
}

/** Returns a new UUIDv7 for a time, given in milliseconds or as ISO 8601 text. */
export function uuid7FromTime(timestamp: number | string): string {
  return runIdAt(timestampUs(timestamp) ?? clock.nowUs());
}
