import { type Context, propagation, type Span, trace } from '@opentelemetry/api';
import { diagnostics } from '../base/diagnostics.ts';
import { guard, reportFailure } from '../base/guard.ts';
import { SPAN_RECORDER } from '../base/shared.ts';
import type { Checks } from '../config/checker.ts';
import { resourceFromEnvironment } from '../config/otlp.ts';
import { defined, type Fields } from '../payload/fields.ts';
import { isOwnWork } from '../platform/suppress-tracing.ts';
import { callsOfSink } from '../run/calls/calls.ts';
import { contextOfRoot, heldRateOf, isOff, leftOutContext, type RunContext, SAMPLED } from '../run/context/context.ts';
import { enteredContext, innermostContext } from '../run/context/current.ts';
import { sinkOf } from '../run/context/inherited.ts';
import { delayedEndsSettled } from '../run/delayed-ends.ts';
import type { Project } from '../run/encoded-run.ts';
import { commonChecks, type Hiding, usableOptions } from '../run/run-options.ts';
import { currentSink, type RunSink } from '../run/sink.ts';
import { noteStep } from './conventions/ai-sdk.ts';
import { type SpanVocabulary, vocabulariesCheck, vocabularyChecks } from './conventions/span-vocabulary.ts';
import { addRegistry, detach, isRecordedSpan, isRoot, recordedRun } from './live/active-spans.ts';
import { extractedFor } from './live/extracted-run.ts';
import { deliver, FlushTime, unwatchEnd, watchForEnd } from './live/flushing.ts';
import { type SpanEntry, SpanRegistry } from './live/span-registry.ts';
import { SpanRun } from './live/span-run.ts';
import { inRequest, type SpanStart } from './live/span-start.ts';
import { reportHiddenNames } from './mapping/hidden-content.ts';
import { namesCheck } from './mapping/resource.ts';
import { SpanPlans } from './mapping/span-plan.ts';
import { mappingWith, type SpanMapping } from './mapping/span-to-run.ts';
import { isExported, type ShouldExport, shouldExportCheck } from './span-filter.ts';
import type { SpanContextLike, SpanLike, SpanProcessorLike } from './span-like.ts';

/** The kind of a span that records an incoming request. */
const SERVER = 1;

const SHUT_DOWN = 'the span had not ended when its provider was shut down';

/** Options of `RunSpanProcessor`. */
export interface RunSpanProcessorOptions {
  /**
   * Exporter for the runs and their nested runs.
   * @default the exporter of the parent run, or the configured exporter
   */
  exporter?: RunSink;
  /**
   * Project for traces that start with a span: its name, or `{ id }`. Nested spans have the project of their parent run.
   * @default the project of the exporter
   */
  project?: string | { readonly id: string } | undefined;
  /**
   * Selects the spans that become runs. `'llm'` selects spans that are related to model calls, based on their
   * attributes and instrumentation, and the open spans above them. `'all'` selects all spans. A function decides for
   * each span. Each span is checked when it starts. Excluded spans are checked again at their end, when all attributes
   * are set. Children that started earlier stay children of the nearest run above the span.
   * @default 'llm'
   */
  shouldExport?: ShouldExport;
  /**
   * Names of the resource attributes that become metadata. `k8s.*` stands for all names that begin with `k8s.`. Attributes
   * that the resource lacks are read from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
   * @default ['service.*', 'deployment.environment', 'deployment.environment.name', 'host.name', 'k8s.*']
   */
  resource?: readonly string[];
  /**
   * Names of the W3C baggage entries that become metadata of runs and their nested runs. `session.id` is also recorded as
   * `thread_id`, and `user.id` as `user_id`. Metadata of a run above takes precedence.
   * @default none, because baggage may contain personal data
   */
  baggage?: readonly string[];
  /**
   * Vocabularies of your own, at most 10, in order of precedence. They take precedence over those that runspan reads.
   * Invalid parts are logged and ignored.
   * @default none
   */
  vocabularies?: readonly SpanVocabulary[];
}

const processorChecks: Checks<RunSpanProcessorOptions> = {
  exporter: commonChecks.exporter,
  project: commonChecks.project,
  shouldExport: shouldExportCheck,
  resource: namesCheck,
  baggage: namesCheck,
  vocabularies: vocabulariesCheck,
};

/**
 * Converts spans to runs. Add this processor to the `spanProcessors` of a tracer provider. A run ends when its
 * span ends. If the span is still open after `limits.startDelayMs`, the start of the run is sent first. Nested spans
 * and traced functions form one trace. Attributes from OpenInference, GenAI, Vercel AI SDK, Traceloop, Langfuse
 * and agent frameworks become run types, inputs, outputs and token counts. All other attributes become metadata.
 *
 * If OpenTelemetry records a span but does not sample it, the span is left out. The children of such a span become
 * children of the parent run. With `keep`, its trace is held like one that the sample rate drops, unless the caller in
 * another process has left out the trace. If tracing is off, the processor does nothing.
 */
export class RunSpanProcessor implements SpanProcessorLike {
  static {
    Object.defineProperty(RunSpanProcessor.prototype, SPAN_RECORDER, { value: true });
  }

  readonly #options: RunSpanProcessorOptions & Hiding;
  readonly #project: Project | undefined;
  readonly #shouldExport: ShouldExport;
  readonly #mapping: SpanMapping;
  readonly #plans: SpanPlans;
  readonly #spans = new SpanRegistry();
  #flushTime = new FlushTime();
  /** Number of ended spans that became no run. */
  #leftOut = 0;
  #shutdown: Promise<void> | undefined;

  constructor(options?: RunSpanProcessorOptions) {
    this.#options = usableOptions<RunSpanProcessorOptions>('RunSpanProcessor', options, processorChecks);
    this.#project = this.#options.project;
    this.#shouldExport = this.#options.shouldExport ?? 'llm';
    this.#mapping = mappingOf(this.#options);
    this.#plans = new SpanPlans(this.#mapping);
    addRegistry(this.#spans);
  }

  /** @internal Overrides the timeout of 29 s. */
  set flushTimeoutMs(timeoutMs: number) {
    this.#flushTime = new FlushTime(timeoutMs);
  }

  onStart(span: SpanLike, parentContext: Context): void {
    if (this.#shutdown !== undefined || isOwnWork()) return;
    try {
      this.#start(span, parentContext);
    } catch (thrown) {
      reportFailure('RunSpanProcessor.onStart', thrown);
    }
  }

  onEnd(span: SpanLike): void {
    try {
      const entry = this.#spans.end(span);
      if (entry instanceof SpanRun) entry.end(span);
      else if (entry instanceof FilteredSpan) this.#reconsider(span, entry);
    } catch (thrown) {
      reportFailure('RunSpanProcessor.onEnd', thrown);
    }
  }

  /**
   * Waits up to 29 s until all runs recorded so far are delivered. Rejects if a run is dropped, or still waits after
   * that time. Resolves if tracing is off.
   */
  forceFlush(): Promise<void> {
    return this.#shutdown ?? this.#flushTime.whole((timeoutMs) => this.#flush(timeoutMs));
  }

  /**
   * Ends the runs of open spans as interrupted, stops recording and flushes. If `forceFlush` has just timed out, both
   * calls together take at most 29 s. Never rejects. The exporter stays open, because other code may use it. To close all exporters,
   * call the package's `shutdown()`.
   */
  shutdown(): Promise<void> {
    this.#shutdown ??= this.#close();
    return this.#shutdown;
  }

  #start(span: SpanLike, parentContext: Context): void {
    const parentSpan = trace.getSpan(parentContext);
    noteStep(span, parentSpan as Partial<SpanLike> | undefined);
    const parent = this.#parentOf(parentSpan, parentContext);
    const sink = sinkOf(parent, this.#options.exporter);
    const ids = span.spanContext();
    // A later span may have this one as its parent, and start outside of what is off.
    if (isOff(parent)) this.#spans.add(span, { ids, isOpen: true, context: parent });
    if (sink === undefined || isRecordedSpan(span, sink)) return;
    const start: SpanStart = {
      ids,
      parentIds: parentIdsOf(span, parentSpan),
      parent,
      isAboveRequest: span.kind === SERVER || (parentSpan === undefined && isRoot(parentContext)),
      sink,
      project: this.#project,
      mapping: this.#mapping,
      plans: this.#plans,
      baggage: this.#options.baggage && baggageIn(parentContext, this.#options.baggage),
      hiding: this.#options,
      startSequence: callsOfSink(sink).nextSequence,
    };
    this.#spans.add(span, this.#entryFor(span, start, this.#filteredAbove(parentSpan)));
  }

  /** Returns the entry of a parent span that has no run yet. A run that became current inside the span is nearer. */
  #filteredAbove(parentSpan: Span | undefined): FilteredSpan | undefined {
    if (this.#shouldExport !== 'llm' || parentSpan === undefined) return undefined;
    if (parentSpan === enteredContext()?.span) return undefined;
    const entry = this.#spans.find(parentSpan);
    return entry instanceof FilteredSpan ? entry : undefined;
  }

  #entryFor(span: SpanLike, given: SpanStart, above: FilteredSpan | undefined): SpanEntry {
    const { ids } = given;
    const isLeftOut = (ids.traceFlags & SAMPLED) === 0 && !mayBeHeld(given);
    if (isLeftOut) return { ids, isOpen: true, context: contextBelow(given) };
    if (!isExported(span, this.#shouldExport, this.#mapping.index)) {
      const promote = (filtered: FilteredSpan): SpanEntry => this.#promoted(span, filtered);
      return new FilteredSpan(given, above, this.#shouldExport === 'llm' ? promote : undefined);
    }
    return new SpanRun(span, inRequest(above === undefined ? given : { ...given, parent: above.context }));
  }

  /** Starts the runs of an open span and of the open spans above it, because a run starts below them. */
  #promoted(span: SpanLike, { start, above }: FilteredSpan): SpanEntry {
    const recorded = recordedRun(span, start.sink);
    if (recorded !== undefined) return { ids: start.ids, isOpen: true, context: recorded.context };
    const entry = new SpanRun(span, inRequest(above === undefined ? start : { ...start, parent: above.context }));
    this.#spans.add(span, entry);
    return entry;
  }

  /** Applies the filter again to an ended span, because all attributes are now set. */
  #reconsider(span: SpanLike, filtered: FilteredSpan): void {
    const { start, above } = filtered;
    if (this.#shutdown !== undefined || isRecordedSpan(span, start.sink)) return;
    const entry = this.#entryFor(span, { ...start, isEnded: true }, above);
    if (entry instanceof FilteredSpan) {
      filtered.forgetAbove();
      if (this.#leftOut++ === 0) watchForEnd(this.#reportLeftOut);
      return;
    }
    this.#spans.add(span, entry);
    this.#spans.end(span);
    if (entry instanceof SpanRun) entry.end(span);
  }

  /**
   * Returns the context of the parent run. The parent is the run of the parent span, or a run that became current
   * inside that span. If the parent span is remote, the run from the same message is used.
   */
  #parentOf(parentSpan: Span | undefined, parentContext: Context): RunContext | undefined {
    const entered = enteredContext();
    if (parentSpan !== undefined) {
      if (parentSpan === entered?.span) return entered;
      // If several processors have recorded the parent span, each processor uses its own run as the parent.
      const known = this.#spans.find(parentSpan);
      if (known !== undefined) return known instanceof FilteredSpan ? known.runAbove : known.context;
    } else if (isRoot(parentContext)) {
      return contextOfRoot(entered);
    }
    const extracted = extractedFor(parentContext, parentSpan);
    const above = parentSpan ?? extracted;
    if (above === undefined || above === entered?.span) return entered;
    const sink = extracted && (this.#options.exporter ?? currentSink());
    return sink === undefined ? innermostContext(entered, above) : extracted?.contextFor(sink);
  }

  async #close(): Promise<void> {
    detach(this.#spans);
    this.#reportLeftOut();
    unwatchEnd(this.#reportLeftOut);
    reportHiddenNames();
    // Child spans are ended first, so that a run ends after its child runs.
    for (const entry of this.#spans.entries.toReversed()) {
      if (entry instanceof SpanRun) guard('RunSpanProcessor.shutdown', () => entry.interrupt(SHUT_DOWN));
    }
    const flushed = this.#flush(this.#flushTime.lastMs);
    this.#spans.forgetIds();
    await flushed;
  }

  readonly #reportLeftOut = (): void => {
    if (this.#leftOut === 0 || this.#options.shouldExport !== undefined) return;
    diagnostics.warnOnce(
      'left out spans',
      `RunSpanProcessor: ${this.#leftOut} spans that are not related to model calls became no runs; set \`shouldExport: 'all'\` to record all spans, or 'llm' to hide this line.`,
    );
  };

  /** Returns the error of the first sink that has not delivered all runs. */
  async #flush(timeoutMs: number): Promise<unknown> {
    const sinks = [...this.#sinks()];
    const { leftMs } = await delayedEndsSettled(timeoutMs);
    const flushes = await Promise.allSettled(sinks.map((sink) => deliver(sink, leftMs)));
    return flushes.find((flush) => flush.status === 'rejected')?.reason;
  }

  #sinks(): Set<RunSink> {
    const sinks = new Set<RunSink>();
    const present = this.#options.exporter ?? currentSink();
    if (present !== undefined) sinks.add(present);
    for (const entry of this.#spans.entries) if (entry instanceof SpanRun) sinks.add(entry.sink);
    return sinks;
  }
}

/** A span that `shouldExport` excluded at its start. The span is checked again when it ends. */
class FilteredSpan implements SpanEntry {
  readonly ids: SpanContextLike;
  isOpen = true;
  start: SpanStart;
  /** The parent span, if it has no run either. */
  above: FilteredSpan | undefined;
  readonly #promote: ((filtered: FilteredSpan) => SpanEntry) | undefined;
  /** The entry that replaces this one once a run has started below the open span. */
  #entry: SpanEntry | undefined;

  /** `promote` starts the run of the span. Undefined if a function has excluded the span. */
  constructor(
    start: SpanStart,
    above: FilteredSpan | undefined,
    promote: ((filtered: FilteredSpan) => SpanEntry) | undefined,
  ) {
    this.ids = start.ids;
    this.start = start;
    this.above = above;
    this.#promote = promote;
  }

  get runAbove(): RunContext | undefined {
    return this.#entry?.context ?? (this.above === undefined ? this.start.parent : this.above.runAbove);
  }

  /** The context for a run below. The open span then becomes a run, too. */
  get context(): RunContext | undefined {
    if (this.isOpen) this.#entry ??= this.#promote?.(this);
    return this.runAbove;
  }

  /** Called at the end of the span, so that a long chain of spans does not stay in memory. */
  forgetAbove(): void {
    this.start = { ...this.start, parent: this.runAbove };
    this.above = undefined;
  }
}

/** Whether `keep` decides on a span that OpenTelemetry records but does not sample. A caller's decision is final. */
function mayBeHeld({ parent, parentIds, sink }: SpanStart): boolean {
  if (sink.hold === undefined || parent?.sampled === false) return false;
  return parent?.id === undefined ? parentIds?.isRemote !== true : heldRateOf(parent) !== undefined;
}

/** Returns the context below a span that is not sampled. With `keep`, no trace starts below the span. */
function contextBelow({ parent, sink }: SpanStart): RunContext | undefined {
  const isTraceBelow = sink.hold === undefined;
  return isTraceBelow || parent?.id !== undefined ? parent : leftOutContext(parent);
}

function mappingOf({ resource, vocabularies }: RunSpanProcessorOptions): SpanMapping {
  const usable = vocabularies?.map((given, at) =>
    usableOptions<SpanVocabulary>(`RunSpanProcessor: vocabularies[${at}]`, given, vocabularyChecks),
  );
  return mappingWith(usable, resource, resourceFromEnvironment);
}

function baggageIn(parentContext: Context, names: readonly string[]): Fields | undefined {
  const baggage = propagation.getBaggage(parentContext);
  const entries = names.flatMap((name) => {
    const value = baggage?.getEntry(name)?.value;
    return value === undefined ? [] : [[name, value] as const];
  });
  if (entries.length === 0) return undefined;
  const fields = Object.fromEntries(entries);
  return { ...defined({ thread_id: fields['session.id'], user_id: fields['user.id'] }), ...fields };
}

function parentIdsOf(span: SpanLike, parentSpan: Span | undefined): SpanContextLike | undefined {
  if (span.parentSpanContext || span.parentSpanId === undefined) return span.parentSpanContext ?? undefined;
  return parentSpan?.spanContext();
}
