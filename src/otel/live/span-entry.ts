import type { RunContext } from '../../run/context.ts';
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
