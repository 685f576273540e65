import { makeSlot, type Slot } from '../../base/slot.ts';
import type { RunContext } from '../../run/context.ts';
import type { SpanContextLike } from '../span-like.ts';
import { LateEntry, type SpanEntry } from './span-entry.ts';
import { SpanRun } from './span-run.ts';

/** Maximum number of open spans that can be found by id. */
const OPEN_MAX = 10_000;

/** Number of recent spans that can be found by id even after they have ended. */
const LATEST_MIN = 50;

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

  /** Adds the entry of a span, or replaces its earlier entry. */
  add(span: SpanKey, entry: SpanEntry): void {
    const earlier = this.#bySpan.get(span);
    if (earlier !== undefined) earlier.isOpen = false;
    this.#bySpan.set(span, entry);
    if (this.#latest.push(entry) > this.#lengthMax) this.#removeEnded();
  }

  /** Marks a span as ended and returns its entry. */
  end(span: SpanKey): SpanEntry | undefined {
    const entry = this.#entryOf(span);
    if (entry !== undefined) entry.isOpen = false;
    return created(entry);
  }

  /** Returns the entry of a span object, or undefined if it has not been created yet. */
  get(span: object): SpanEntry | undefined {
    const entry = this.#bySpan.get(span);
    return entry instanceof LateEntry ? entry.known : entry;
  }

  /** Returns the entry of this span object, or of a span with the same ids. */
  find(span: SpanKey): SpanEntry | undefined {
    return created(this.#entryOf(span));
  }

  /** Replaces a span with a run. Has no effect if the entry of the span has already been created. */
  replace(span: SpanKey, context: RunContext): void {
    const entry = this.#entryOf(span);
    if (entry instanceof LateEntry) entry.replace(context);
  }

  forgetIds(): void {
    this.#latest = [];
  }

  *entries(): Iterable<SpanEntry> {
    for (const added of this.#latest) {
      const entry = created(added);
      if (entry !== undefined) yield entry;
    }
  }

  /** The runs of open spans. Spans whose entries have not been created yet are left out. */
  get openRuns(): SpanRun[] {
    const entries = this.#latest.map((entry) => (entry instanceof LateEntry ? entry.known : entry));
    return entries.filter((entry) => entry instanceof SpanRun && !entry.isEnded) as SpanRun[];
  }

  #entryOf(span: SpanKey): SpanEntry | undefined {
    const entry = this.#bySpan.get(span);
    if (entry !== undefined) return entry;
    const { traceId, spanId } = span.spanContext();
    return this.#latest.findLast(({ ids }) => ids.spanId === spanId && ids.traceId === traceId);
  }

  /** Removes ended spans whenever the list has doubled. Removing each span at its end would be slower. */
  #removeEnded(): void {
    const latestAt = this.#latest.length - LATEST_MIN;
    this.#latest = this.#latest
      .filter((entry, at) => {
        const run = entry instanceof LateEntry ? entry.known : entry;
        return entry.isOpen || at >= latestAt || (run instanceof SpanRun && run.isWaiting);
      })
      .slice(-OPEN_MAX);
    this.#lengthMax = 2 * Math.max(LATEST_MIN, this.#latest.length);
  }
}

function created(entry: SpanEntry | undefined): SpanEntry | undefined {
  return entry instanceof LateEntry ? entry.created() : entry;
}
