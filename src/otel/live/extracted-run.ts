import { type Context, createContextKey, trace } from '@opentelemetry/api';
import type { RunContext } from '../../run/context/context.ts';
import type { RemoteRun } from '../../run/propagation/propagation.ts';
import type { RunSink } from '../../run/sink.ts';
import type { SpanContextLike } from '../span-like.ts';

const KEY = createContextKey('runspan extracted run');

/**
 * A run in another process, stored in an OpenTelemetry context. The message that carried the run may also carry a
 * remote span.
 */
export class ExtractedRun {
  readonly #run: RemoteRun;
  /** Id of the remote span in the same message. Undefined if the message has no remote span. */
  readonly spanId: string | undefined;
  #known: { readonly sink: RunSink; readonly context: RunContext } | undefined;

  constructor(run: RemoteRun, spanId: string | undefined) {
    this.#run = run;
    this.spanId = spanId;
  }

  contextFor(sink: RunSink): RunContext {
    if (this.#known?.sink !== sink) this.#known = { sink, context: this.#run.contextFor(sink) };
    return this.#known.context;
  }
}

/** Returns a context that contains the run. A remote span in `context` must come from the same message as the run. */
export function withExtracted(context: Context, run: RemoteRun): Context {
  const ids: SpanContextLike | undefined = trace.getSpanContext(context);
  return context.setValue(KEY, new ExtractedRun(run, ids?.isRemote === true ? ids.spanId : undefined));
}

/** Returns the remote run to use as the parent in this context. Called if `span` has no run in this process. */
export function extractedFor(
  context: Context,
  span: { spanContext(): SpanContextLike } | undefined,
): ExtractedRun | undefined {
  const extracted = context.getValue(KEY);
  if (!(extracted instanceof ExtractedRun)) return undefined;
  // The run in a context may be from an earlier message than the span.
  const isBeside = extracted.spanId === undefined || extracted.spanId === span?.spanContext().spanId;
  return isBeside ? extracted : undefined;
}
