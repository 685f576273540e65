import { type Context, type Span, trace } from '@opentelemetry/api';
import { guard } from '../base/guard.ts';
import { safeText } from '../base/text.ts';
import { enteredContext, innermostContext, type RunContext } from '../run/context.ts';
import { Run, sinkOf, verdictOn } from '../run/run.ts';
import { commonChecks, usableOptions } from '../run/run-options.ts';
import { currentSink, type RunSink } from '../run/sink.ts';
import { attach, detach, isRecorded } from './active-spans.ts';
import { type ExtractedRun, extractedFor } from './extracted-run.ts';
import { LateEntry } from './late-entry.ts';
import type { SpanContextLike, SpanLike, SpanProcessorLike } from './span-like.ts';
import { mayBeSeen, seenAlready } from './span-model-call.ts';
import { type SpanEntry, SpanRegistry } from './span-registry.ts';
import { runIdOf, SpanRun, type SpanStart } from './span-run.ts';
import { isEmpty } from './values.ts';

/** Ahead of the 30 s after which a tracer provider gives up on a processor, so that it has our answer. */
const FLUSH_TIMEOUT_MS = 29_000;

/** Of a span's trace flags, the one that says that it is to be exported. */
const SAMPLED = 1;

export interface RunSpanProcessorOptions {
  /** Where the runs go, and all below them. @default the parent run's, else the configured one */
  exporter?: RunSink;
  /** The project of traces that start with a span; spans below a run are in the run's. @default that of the exporter */
  project?: string;
}

/**
 * Makes a run of every span, for the `spanProcessors` of a tracer provider. A run is posted when its span starts and
 * completed when it ends. Spans inside traced functions, and traced functions inside spans, are parent and child in one
 * trace. Attributes of the OpenInference and GenAI conventions, of Vercel's AI SDK, of Traceloop and of Langfuse become run
 * types, inputs, outputs and token counts; all others are metadata.
 *
 * Spans that are recorded but not sampled are left out, and what is below them moves up. With tracing off it does nothing.
 */
export class RunSpanProcessor implements SpanProcessorLike {
  readonly #options: RunSpanProcessorOptions;
  readonly #spans = new SpanRegistry();
  #shutdown: Promise<void> | undefined;

  constructor(options?: RunSpanProcessorOptions) {
    const { exporter, project } = commonChecks;
    this.#options = usableOptions<RunSpanProcessorOptions>('RunSpanProcessor', options, { exporter, project });
    attach(this.#spans);
  }

  onStart(span: SpanLike, parentContext: Context): void {
    if (this.#shutdown === undefined) guard('RunSpanProcessor.onStart', () => this.#start(span, parentContext));
  }

  onEnd(span: SpanLike): void {
    guard('RunSpanProcessor.onEnd', () => {
      const entry = this.#spans.end(span);
      if (entry instanceof SpanRun) entry.end(span);
      else if (entry?.call !== undefined) entry.call.isTaken = false;
    });
  }

  /** Waits until the runs recorded so far are delivered or given up. Never rejects; `stats()` tells of losses. */
  async forceFlush(): Promise<void> {
    const sinks = [...this.#sinks()];
    await Promise.all(sinks.map((sink) => sink.flush({ timeoutMs: FLUSH_TIMEOUT_MS })));
  }

  /**
   * Flushes, and records no further span; those that are open may still end. The exporter stays open, as others may use
   * it: `shutdown()` of the package closes them all.
   */
  shutdown(): Promise<void> {
    detach(this.#spans);
    this.#shutdown ??= this.forceFlush();
    return this.#shutdown;
  }

  #start(span: SpanLike, parentContext: Context): void {
    const parentSpan = trace.getSpan(parentContext);
    const parent = this.#parentOf(parentSpan, extractedFor(parentContext, parentSpan));
    const sink = this.#options.exporter ?? sinkOf(parent);
    if (sink === undefined || isRecorded(span, sink)) return;
    const ids = span.spanContext();
    if ((ids.traceFlags & SAMPLED) === 0) {
      if (parent !== undefined) this.#spans.add(span, { context: parent });
      return;
    }
    const { project } = this.#options;
    const leftOut = sampledOut(span, parent, sink, project);
    if (leftOut !== undefined) {
      this.#spans.add(span, leftOut);
      return;
    }
    const start: SpanStart = { ids, parentIds: parentIdsOf(span, parentSpan), parent, sink, project };
    const isLate = mayBeSeen(parent) && isEmpty(span.attributes);
    this.#spans.add(span, isLate ? new LateEntry(() => entryFor(span, start)) : entryFor(span, start));
  }

  /**
   * The nearest run above a span: that of its parent span, the one of another process that came with that, or the one that
   * was entered since that became active.
   */
  #parentOf(parentSpan: Span | undefined, extracted: ExtractedRun | undefined): RunContext | undefined {
    const entered = enteredContext();
    // Started with `root: true` inside another span: a trace of its own.
    if (parentSpan === undefined && trace.getActiveSpan() !== undefined) return undefined;
    const above = parentSpan ?? extracted;
    if (above === undefined || above === entered?.span) return entered;
    // With several processors, the run that this one has made of the parent comes first.
    const known = parentSpan && this.#spans.find(parentSpan);
    if (known !== undefined) return known.context;
    const sink = extracted && (this.#options.exporter ?? currentSink());
    return sink === undefined ? innermostContext(entered, above) : extracted?.contextFor(sink);
  }

  /** The sinks that runs of this processor went to lately, and the one that they would go to now. */
  #sinks(): Set<RunSink> {
    const sinks = new Set<RunSink>();
    const present = this.#options.exporter ?? currentSink();
    if (present !== undefined) sinks.add(present);
    for (const entry of this.#spans.entries()) if (entry instanceof SpanRun) sinks.add(entry.sink);
    return sinks;
  }
}

/** Its run, unless somebody else has made one of the same call. */
function entryFor(span: SpanLike, start: SpanStart): SpanEntry {
  return seenAlready(span.attributes, start.parent, start.sink) ?? new SpanRun(span, start);
}

/** What stands for a span whose trace sampling leaves out; undefined when it is recorded. */
function sampledOut(
  span: SpanLike,
  parent: RunContext | undefined,
  sink: RunSink,
  project: string | undefined,
): Run | undefined {
  if (parent?.sampled !== false && sink.capture.sampling === undefined) return undefined;
  const options = { name: safeText(span.name), id: runIdOf(span), ...(project !== undefined && { project }) };
  const verdict = verdictOn(options, parent, sink);
  return verdict.isKept ? undefined : new Run(options, parent, sink, undefined, verdict);
}

function parentIdsOf(span: SpanLike, parentSpan: Span | undefined): SpanContextLike | undefined {
  if (span.parentSpanContext !== undefined || span.parentSpanId === undefined) return span.parentSpanContext;
  return parentSpan?.spanContext();
}
