import { makeSlot, type Slot } from '../base/slot.ts';
import { setTimer } from '../base/timers.ts';
import type { RunContext } from '../run/context.ts';
import { LateEntry } from './late-entry.ts';

/**
 * Spans found by their ids alone: what is put in the active context may be a wrapper around the span that was started
 * (OpenInference does so). So many open ones are found that way, and so many of those that started last; the others are
 * found as the objects that they are. Few of the ended are kept: each costs the garbage collector, and their children have,
 * as a rule, started.
 */
const OPEN_MAX = 10_000;
const LATEST_MIN = 50;

/**
 * A weak reference for each span would make it about a tenth dearer. As a rule spans end before this is over; those that have
 * not are let go of, at most so long again after that.
 */
const HELD_MS = 1_000;

/** What we use of a span to find it again. */
export interface SpanKey {
  spanContext(): { readonly traceId: string; readonly spanId: string };
}

/** What is known of a span: a `SpanRun` where the span is a run itself. */
export interface SpanEntry {
  /** For runs that start below it; undefined when the span was left out and there is no run above it either. */
  readonly context: RunContext | undefined;
  /** Called when the span has been open for a while. */
  letGo?(): void;
}

type GivenEntry = SpanEntry | LateEntry;

/** A span that was seen to start. */
interface SeenSpan {
  readonly entry: GivenEntry;
  readonly traceId: string;
  isOpen: boolean;
}

/** The spans that one processor has seen start. Holds on to none of them for long. */
export class SpanRegistry {
  readonly #bySpan: Slot<SeenSpan> = makeSlot();
  /**
   * By span id, in two generations: when the later one is full, it becomes the earlier one, of which no more than the open
   * ones go on. To delete each span when it ends would cost several times as much.
   */
  #later = new Map<string, SeenSpan>();
  #earlier = new Map<string, SeenSpan>();
  #laterMax = LATEST_MIN;
  #timer: NodeJS.Timeout | undefined;

  add(span: SpanKey, entry: GivenEntry): void {
    const { traceId, spanId } = span.spanContext();
    const seen = { entry, traceId, isOpen: true };
    this.#bySpan.set(span, seen);
    this.#later.set(spanId, seen);
    if (this.#later.size >= this.#laterMax) this.#turn();
    this.#timer ??= setTimer(() => this.#letGo(), HELD_MS).unref();
  }

  /** Notes that the span has ended, and gives what was added for it. */
  end(span: SpanKey): SpanEntry | undefined {
    const seen = this.#seen(span);
    if (seen === undefined) return undefined;
    seen.isOpen = false;
    return made(seen.entry);
  }

  /** Returns the entry added for this span object, or undefined if it has not been created yet. */
  get(span: object): SpanEntry | undefined {
    const entry = this.#bySpan.get(span)?.entry;
    return entry instanceof LateEntry ? entry.known : entry;
  }

  /** The same, or what was added for a span of the same ids. */
  find(span: SpanKey): SpanEntry | undefined {
    return made(this.#seen(span)?.entry);
  }

  /** Replaces a span with a run, if the entry of the span has not been created yet. */
  replace(span: SpanKey, context: RunContext): void {
    const entry = this.#seen(span)?.entry;
    if (entry instanceof LateEntry) entry.replace(context);
  }

  /** From now on spans are found as the objects alone. */
  forgetIds(): void {
    this.#later.clear();
    this.#earlier.clear();
  }

  /** The latest entries, and those of open spans. */
  *entries(): Iterable<SpanEntry> {
    for (const generation of [this.#earlier, this.#later]) {
      for (const seen of generation.values()) {
        const entry = made(seen.entry);
        if (entry !== undefined) yield entry;
      }
    }
  }

  #seen(span: SpanKey): SeenSpan | undefined {
    const seen = this.#bySpan.get(span);
    if (seen !== undefined) return seen;
    const { traceId, spanId } = span.spanContext();
    const found = this.#later.get(spanId) ?? this.#earlier.get(spanId);
    return found?.traceId === traceId ? found : undefined;
  }

  #turn(): void {
    const later = new Map<string, SeenSpan>();
    this.#earlier.forEach((seen, spanId) => {
      if (seen.isOpen) later.set(spanId, seen);
    });
    for (const oldest of later.keys()) {
      if (later.size <= OPEN_MAX) break;
      later.delete(oldest);
    }
    this.#earlier = this.#later;
    this.#later = later;
    this.#laterMax = later.size + Math.max(LATEST_MIN, later.size);
  }

  #letGo(): void {
    this.#timer = undefined;
    for (const generation of [this.#earlier, this.#later]) {
      for (const { entry, isOpen } of generation.values()) if (isOpen) made(entry)?.letGo?.();
    }
  }
}

function made(entry: GivenEntry | undefined): SpanEntry | undefined {
  return entry instanceof LateEntry ? entry.made() : entry;
}

/** The ids of a span as one text. */
export function idsOf(span: SpanKey): string {
  const { traceId, spanId } = span.spanContext();
  return `${traceId}:${spanId}`;
}
