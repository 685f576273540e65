import { makeSlot, type Slot } from '../../base/slot.ts';
import type { RunContext } from '../../run/context/context.ts';
import type { SpanContextLike } from '../span-like.ts';

const OPEN_MAX = 10_000;

/** Number of recent spans that can be found by id even after they have ended. */
const LATEST_MIN = 50;

/** What a processor knows about a span. If the span became a run, the entry is a `SpanRun`. */
export interface SpanEntry {
  readonly ids: SpanContextLike;
  isOpen: boolean;
  /** The context for nested runs. Undefined if neither the span nor an enclosing span has a run. */
  readonly context: RunContext | undefined;
}

/** An object that has the ids of a span, for example a wrapper around the span. */
export interface SpanKey {
  spanContext(): SpanContextLike;
}

/**
 * The spans that one processor has seen, by object and by id. Ids are needed because the active context may contain a
 * wrapper around a span, for example with OpenInference. Old spans can be found only by object.
 */
export class SpanRegistry {
  readonly #bySpan: Slot<SpanEntry> = makeSlot();
  /** Entries in start order. An array is used because adding to a map is slower, and searches are rare. */
  #latest: SpanEntry[] = [];
  #lengthMax = 2 * LATEST_MIN;

  add(span: SpanKey, entry: SpanEntry): void {
    const earlier = this.#bySpan.get(span);
    if (earlier !== undefined) earlier.isOpen = false;
    this.#bySpan.set(span, entry);
    if (this.#latest.push(entry) > this.#lengthMax) this.#removeEnded();
  }

  end(span: SpanKey): SpanEntry | undefined {
    const entry = this.find(span);
    if (entry !== undefined) entry.isOpen = false;
    return entry;
  }

  get(span: object): SpanEntry | undefined {
    return this.#bySpan.get(span);
  }

  /** Returns the entry of this span object, or of a span with the same ids. */
  find(span: SpanKey): SpanEntry | undefined {
    const entry = this.#bySpan.get(span);
    if (entry !== undefined) return entry;
    const { traceId, spanId } = span.spanContext();
    return this.#latest.findLast(({ ids }) => ids.spanId === spanId && ids.traceId === traceId);
  }

  forgetIds(): void {
    this.#latest = [];
  }

  get entries(): readonly SpanEntry[] {
    return this.#latest;
  }

  /** Removes ended spans whenever the list has doubled. Removing each span at its end would be slower. */
  #removeEnded(): void {
    const latestAt = this.#latest.length - LATEST_MIN;
    this.#latest = this.#latest.filter(({ isOpen }, at) => isOpen || at >= latestAt).slice(-OPEN_MAX);
    this.#lengthMax = 2 * Math.max(LATEST_MIN, this.#latest.length);
  }
}
