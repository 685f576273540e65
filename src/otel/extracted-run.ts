import { type Context, createContextKey, trace } from '@opentelemetry/api';
import type { RunContext } from '../run/context.ts';
import type { RemoteRun } from '../run/propagation.ts';
import type { RunSink } from '../run/sink.ts';
import type { SpanContextLike } from './span-like.ts';

const KEY = createContextKey('runspan extracted run');

/**
 * A run of another process in a context of OpenTelemetry. Where nothing but our header came, so that there is no remote
 * span, it stands in the place of one.
 */
export class ExtractedRun {
  readonly #run: RemoteRun;
  /** The remote span that came with it; undefined where none did. */
  readonly #spanId: string | undefined;
  #known: { readonly sink: RunSink; readonly context: RunContext } | undefined;

  constructor(run: RemoteRun, spanId: string | undefined) {
    this.#run = run;
    this.#spanId = spanId;
  }

  /** What runs below it are told, which go to this sink. */
  contextFor(sink: RunSink): RunContext {
    if (this.#known?.sink !== sink) this.#known = { sink, context: this.#run.contextFor(sink) };
    return this.#known.context;
  }

  /** Whether both came in one message: a context keeps the run of an earlier one when another brings a span alone. */
  isBeside(span: SpanContextLike | undefined): boolean {
    return this.#spanId === undefined || this.#spanId === span?.spanId;
  }
}

/** The context with a run that its message told of, beside the remote span that has been read of it. */
export function withExtracted(context: Context, run: RemoteRun): Context {
  const ids: SpanContextLike | undefined = trace.getSpanContext(context);
  return context.setValue(KEY, new ExtractedRun(run, ids?.isRemote === true ? ids.spanId : undefined));
}

/** The run of another process that stands above a span of this context that is no run here, or where there is none. */
export function extractedFor(
  context: Context,
  span: { spanContext(): SpanContextLike } | undefined,
): ExtractedRun | undefined {
  const extracted = context.getValue(KEY);
  return extracted instanceof ExtractedRun && extracted.isBeside(span?.spanContext()) ? extracted : undefined;
}
