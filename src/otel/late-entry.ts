import { guard } from '../base/guard.ts';
import { enclosingModelCall, type RunContext } from '../run/context.ts';
import type { RunSink } from '../run/sink.ts';
import type { SpanEntry } from './span-registry.ts';

/**
 * Delays the entry of a span if it is not known at its start which call the span records: OpenInference sets attributes after
 * the start, and the stream helpers of Anthropic's SDK start a span before they call the wrapped method. The entry is created
 * when a child starts, when the span ends, or when the code that started the span returns to the event loop.
 */
export class LateEntry {
  readonly #sink: RunSink;
  #make: (() => SpanEntry) | undefined;
  #made: SpanEntry | undefined;

  constructor(make: () => SpanEntry, sink: RunSink) {
    this.#make = make;
    this.#sink = sink;
    queueMicrotask(() => void this.made());
  }

  made(): SpanEntry | undefined {
    const make = this.#make;
    this.#make = undefined;
    if (make !== undefined) this.#made = guard('RunSpanProcessor.onStart', make);
    return this.#made;
  }

  /** The entry, or undefined if it has not been created yet. */
  get known(): SpanEntry | undefined {
    return this.#made;
  }

  /** Replaces the span with the run of a model call, if that run has the same sink. */
  replace(context: RunContext): void {
    if (this.#make === undefined || enclosingModelCall(context, this.#sink) === undefined) return;
    this.#make = undefined;
    this.#made = { context };
  }
}
