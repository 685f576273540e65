import { makeSlot, type Slot } from '../../base/slot.ts';
import type { RunContext } from '../../run/context.ts';
import type { SpanContextLike } from '../span-like.ts';
import { LateEntry, type SpanEntry } from './span-entry.ts';

/** Maximum number of open spans that can be found by their ids. */
const OPEN_MAX = 10_000;

/** Number of latest spans that can be found by their ids even after they have ended. */
const LATEST_MIN = 50;

/** An object with a span's ids, for example a wrapper around the span. */
export interface SpanKey {
  spanContext(): SpanContextLike;
}

/**
 * The spans that one processor has seen. Spans are found by object or by id, because the active context may contain a
 * wrapper instead of the span itself, for example with OpenInference. Some time after its end, a span can be found only
 * by its object.
 */
export class SpanRegistry {
  readonly #bySpan: Slot<SpanEntry> = makeSlot();
  /** Entries in start order. Searches are rare, and appending to an array is faster than adding to a map. */
  #latest: SpanEntry[] = [];
  #lengthMax = 2 * LATEST_MIN;

  add(span: SpanKey, entry: SpanEntry): void {
    this.#bySpan.set(span, entry);
    if (this.#latest.push(entry) > this.#lengthMax) this.#removeEnded();
  }

  /** Marks the span as ended, and returns its entry. */
  end(span: SpanKey): SpanEntry | undefined {
    const entry = this.#entryOf(span);
    if (entry !== undefined) entry.isOpen = false;
    return created(entry);
  }

  /** Returns the entry for this span object. Returns undefined until the entry is created. */
  get(span: object): SpanEntry | undefined {
    const entry = this.#bySpan.get(span);
    return entry instanceof LateEntry ? entry.known : entry;
  }

  /** Returns the entry for this span object, or for a span with the same ids. */
  find(span: SpanKey): SpanEntry | undefined {
    return created(this.#entryOf(span));
  }

  /** Replaces a span with a run if the span's entry has not been created yet. */
  replace(span: SpanKey, context: RunContext): void {
    const entry = this.#entryOf(span);
    if (entry instanceof LateEntry) entry.replace(context);
  }

  /** Clears all ids, so that spans can be found only by their objects. */
  forgetIds(): void {
    this.#latest = [];
  }

  *entries(): Iterable<SpanEntry> {
    for (const added of this.#latest) {
      const entry = created(added);
      if (entry !== undefined) yield entry;
    }
  }

  #entryOf(span: SpanKey): SpanEntry | undefined {
    const entry = this.#bySpan.get(span);
    if (entry !== undefined) return entry;
    const { traceId, spanId } = span.spanContext();
    return this.#latest.findLast(({ ids }) => ids.spanId === spanId && ids.traceId === traceId);
  }

  /** Runs when the list has doubled, because removing each span at its end is slower. */
  #removeEnded(): void {
    const latestAt = this.#latest.length - LATEST_MIN;
    this.#latest = this.#latest.filter(({ isOpen }, at) => isOpen || at >= latestAt).slice(-OPEN_MAX);
    this.#lengthMax = 2 * Math.max(LATEST_MIN, this.#latest.length);
  }
}

function created(entry: SpanEntry | undefined): SpanEntry | undefined {
  return entry instanceof LateEntry ? entry.created() : entry;
}
