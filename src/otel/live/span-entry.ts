import { guard } from '../../base/guard.ts';
import { enclosingCall, type RunContext } from '../../run/context.ts';
import type { RunSink } from '../../run/sink.ts';
import type { SpanContextLike } from '../span-like.ts';

/** Stores what a processor knows about a span. If the span became a run, the entry is a `SpanRun`. */
export abstract class SpanEntry {
  readonly ids: SpanContextLike;
  isOpen = true;
  /** The context for nested runs. Undefined if neither the span nor an enclosing span has a run. */
  abstract readonly context: RunContext | undefined;

  constructor(ids: SpanContextLike) {
    this.ids = ids;
  }
}

/** A span that has no run. Nested runs become children of the run in `context`. */
export class SkippedSpan extends SpanEntry {
  readonly context: RunContext | undefined;

  constructor(ids: SpanContextLike, context: RunContext | undefined) {
    super(ids);
    this.context = context;
  }
}

/**
 * Delays the entry of a span. At the start of the span, it may be unknown whether the model call already has a run.
 * OpenInference sets attributes later. Stream helpers in Anthropic's SDK start a span before they call the wrapped
 * method. The entry is created when a child starts, the span ends, or the current code returns to the event loop.
 */
export class LateEntry extends SpanEntry {
  readonly #sink: RunSink;
  #create: (() => SpanEntry) | undefined;
  #created: SpanEntry | undefined;

  constructor(ids: SpanContextLike, sink: RunSink, create: () => SpanEntry) {
    super(ids);
    this.#sink = sink;
    this.#create = create;
    queueMicrotask(() => void this.created());
  }

  get context(): RunContext | undefined {
    return this.created()?.context;
  }

  created(): SpanEntry | undefined {
    const create = this.#create;
    this.#create = undefined;
    if (create !== undefined) this.#created = guard('RunSpanProcessor.onStart', create);
    return this.#created;
  }

  /** The entry of the span. Undefined until it is created. */
  get known(): SpanEntry | undefined {
    return this.#created;
  }

  /** Replaces the span with the run of a model call if that run has the same sink. */
  replace(context: RunContext): void {
    if (this.#create === undefined || enclosingCall(context, this.#sink) === undefined) return;
    this.#create = undefined;
    this.#created = new SkippedSpan(this.ids, context);
  }
}
