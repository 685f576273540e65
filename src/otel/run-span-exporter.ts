import { guard } from '../base/guard.ts';
import { SPAN_RECORDER } from '../base/shared.ts';
import { type Hiding, projectIn, usableOptions } from '../run/run-options.ts';
import { isSameCall } from '../run/same-call.ts';
import { currentSink, type RunSink } from '../run/sink.ts';
import { observeActiveSpan, recordedRun } from './live/active-spans.ts';
import { FlushTime, resourcesSettled, unwatchEnd, watchForEnd } from './live/flushing.ts';
import { spanCall } from './live/span-call.ts';
import { SkippedSpan, type SpanEntry } from './live/span-entry.ts';
import type { SpanKey } from './live/span-registry.ts';
import { SpanRun, startSpanRun } from './live/span-run.ts';
import { idsOf, type WaitingSpan, WaitingSpans } from './live/waiting-spans.ts';
import type { SpanMapping } from './mapping/span-to-run.ts';
import { mappingOf, processorChecks, type RunSpanProcessorOptions } from './run-span-processor.ts';
import { isExported } from './span-filter.ts';
import type { ExportResultLike, SpanContextLike, SpanExporterLike, SpanLike } from './span-like.ts';

/** Maximum number of exported spans to remember as possible parents. */
const LATEST_MAX = 10_000;

const SUCCESS = 0;
const FAILED = 1;
const OPERATION = 'RunSpanExporter.export';

/** Options of `RunSpanExporter`. */
export type RunSpanExporterOptions = Omit<RunSpanProcessorOptions, 'baggage'>;

/**
 * Converts finished spans to runs. Use this exporter only if you want to keep your batch processor. Otherwise use
 * `RunSpanProcessor`, which also observes span starts. `RunSpanProcessor` shows open spans and keeps them if the
 * process crashes. `RunSpanProcessor` also combines spans and wrapped functions in one trace.
 *
 * The position of a run in its trace depends on its parent, but children end before their parents. Each span therefore
 * waits up to 5 minutes for its parent to be exported. Up to 10,000 spans can wait, with up to 64 Mi characters of text
 * in total. If a limit is exceeded, the oldest span starts a new trace. The ids of the missing parent are added to the
 * metadata. A span whose parent is in another process also starts a new trace. `forceFlush`, `shutdown` and the normal
 * end of the process end the wait for all spans.
 *
 * If a `RunSpanProcessor` with the same exporter has recorded a span, the span is not sent again.
 */
export class RunSpanExporter implements SpanExporterLike {
  static {
    Object.defineProperty(RunSpanExporter.prototype, SPAN_RECORDER, { value: true });
  }

  readonly #options: RunSpanExporterOptions & Hiding;
  readonly #mapping: SpanMapping;
  /** The latest exported spans by id. Used to find the parents of later spans. */
  readonly #latest = new Map<string, SpanEntry>();
  readonly #waiting = new WaitingSpans(() => this.#giveUpWaiting(() => this.#waiting.isOverdue));
  readonly #flushTime = new FlushTime();
  #shutdown: Promise<void> | undefined;

  constructor(options?: RunSpanExporterOptions) {
    const { baggage: _, ...checks } = processorChecks;
    this.#options = usableOptions<RunSpanExporterOptions>('RunSpanExporter', options, checks);
    this.#mapping = mappingOf('RunSpanExporter', this.#options);
    observeActiveSpan();
  }

  /**
   * Calls `resultCallback` when all runs are delivered or dropped. If this takes longer than 29 s, `resultCallback`
   * receives a failure, and delivery continues in the background.
   */
  export(spans: readonly SpanLike[], resultCallback: (result: ExportResultLike) => void): void {
    const answer = (error?: Error): void => {
      const result = error === undefined ? { code: SUCCESS } : { code: FAILED, error };
      guard(`${OPERATION}'s callback`, () => resultCallback(result as ExportResultLike));
    };
    if (this.#shutdown !== undefined) {
      answer(new Error('RunSpanExporter was shut down'));
      return;
    }
    const isTaken = guard(OPERATION, () => {
      for (const span of spans) guard(OPERATION, () => this.#take(span));
      return true;
    });
    if (isTaken === undefined) answer(new Error('RunSpanExporter: expected a list of spans'));
    else void this.#flush().then(answer);
  }

  /**
   * Records all spans that are waiting for their parents, then waits up to 29 s until all runs are delivered or
   * dropped. Never rejects.
   */
  async forceFlush(): Promise<void> {
    if (this.#shutdown !== undefined) return this.#shutdown;
    this.#giveUpAll();
    await this.#flush();
  }

  /**
   * Stops accepting spans, then flushes like `forceFlush`. If `export` or `forceFlush` has just timed out, both calls
   * together take at most 29 s. The exporter that delivers the runs stays open, because other code may use it.
   */
  shutdown(): Promise<void> {
    this.#shutdown ??= this.#close();
    unwatchEnd(this.#giveUpAll);
    return this.#shutdown;
  }

  async #close(): Promise<void> {
    this.#giveUpAll();
    await this.#send(this.#flushTime.lastMs);
  }

  #take(span: SpanLike): void {
    const sink = this.#options.exporter ?? currentSink();
    if (sink === undefined || recordedRun(span, sink) !== undefined) return;
    const parentIds = parentIdsOf(span);
    const known = parentIds && this.#known(parentIds, sink);
    if (parentIds === undefined || parentIds.isRemote === true || known !== undefined) {
      this.#record(span, sink, known);
      return;
    }
    this.#waiting.add({ span, parent: idsOf(keyOf(parentIds)), sink });
    this.#giveUpWaiting(() => this.#waiting.isOverfull);
    watchForEnd(this.#giveUpAll);
  }

  #giveUpAll = (): void => this.#giveUpWaiting(() => this.#waiting.size > 0);

  #known(ids: SpanContextLike, sink: RunSink): SpanEntry | undefined {
    const key = keyOf(ids);
    return this.#latest.get(idsOf(key)) ?? recordedRun(key, sink);
  }

  /** Records a span and all spans that wait for it. */
  #record(span: SpanLike, sink: RunSink, parent: SpanEntry | undefined): void {
    // A list is used instead of recursion, because a deeply nested trace could overflow the call stack.
    const ready: { waiting: Omit<WaitingSpan, 'parent'>; above: SpanEntry | undefined }[] = [
      { waiting: { span, sink }, above: parent },
    ];
    for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
      const { waiting, above } = next;
      const entry = guard(OPERATION, () => this.#end(waiting, above)) ?? above;
      for (const child of this.#waiting.takeBelow(idsOf(waiting.span))) ready.push({ waiting: child, above: entry });
    }
  }

  #end({ span, sink }: Omit<WaitingSpan, 'parent'>, above: SpanEntry | undefined): SpanEntry {
    const { shouldExport = 'all' } = this.#options;
    const project = projectIn(this.#options);
    const parent = above?.context;
    const ids = span.spanContext();
    const start = {
      ids,
      parentIds: parentIdsOf(span),
      parent,
      sink,
      project,
      mapping: this.#mapping,
      hiding: this.#options,
    };
    const isSame =
      above instanceof SpanRun &&
      above.sink === sink &&
      isSameCall(above.endedCall, spanCall(span, this.#mapping.index));
    // The parent is already on its way, so data that it lacks would be lost with the span.
    const isRun = isExported(span, shouldExport, this.#mapping.index) && !(isSame && above.hasPartsOf(span));
    const entry = isRun ? startSpanRun(span, start) : new SkippedSpan(ids, parent);
    this.#latest.set(idsOf(span), entry);
    for (const oldest of this.#latest.keys()) {
      if (this.#latest.size <= LATEST_MAX) break;
      this.#latest.delete(oldest);
    }
    if (entry instanceof SpanRun) entry.endedCall = spanCall(span, this.#mapping.index, entry.end(span));
    return entry;
  }

  /** While `hasToBe` returns true, records the oldest waiting span as the root of a new trace. */
  #giveUpWaiting(hasToBe: () => boolean): void {
    guard(OPERATION, () => {
      while (hasToBe()) {
        const first = this.#waiting.takeTopOfOldest();
        if (first === undefined) return;
        this.#record(first.span, first.sink, undefined);
      }
    });
  }

  async #flush(): Promise<Error | undefined> {
    let error: Error | undefined;
    await this.#flushTime.whole(async (timeoutMs) => {
      error = await this.#send(timeoutMs);
      return error === undefined;
    });
    return error;
  }

  async #send(timeoutMs: number): Promise<Error | undefined> {
    try {
      const sink = this.#options.exporter ?? currentSink();
      const waitMs = await resourcesSettled();
      const result = await sink?.flush({ timeoutMs: Math.max(0, timeoutMs - waitMs) });
      return result?.ok === false
        ? new Error(`RunSpanExporter: ${counted(result.pending)} not delivered in time`)
        : undefined;
    } catch (thrown) {
      return thrown instanceof Error ? thrown : new Error('not delivered');
    }
  }
}

function counted(runs: number): string {
  return runs === 1 ? '1 run' : `${runs} runs`;
}

/** Returns the ids of the parent span. Finished spans from SDK 1.x do not record whether their parent is remote. */
function parentIdsOf(span: SpanLike): SpanContextLike | undefined {
  const { parentSpanContext, parentSpanId } = span;
  if (parentSpanContext || !parentSpanId) return parentSpanContext ?? undefined;
  const { traceId, traceFlags } = span.spanContext();
  return { traceId, traceFlags, spanId: parentSpanId };
}

function keyOf(ids: SpanContextLike): SpanKey {
  return { spanContext: () => ids };
}
