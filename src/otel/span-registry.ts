import { setTimer } from '../base/timers.ts';
import type { RunContext } from '../run/context.ts';
import type { ToldCall } from '../run/model-call.ts';
import { LateEntry } from './late-entry.ts';

/**
 * Spans found by their ids alone: what is put in the active context may be a wrapper around the span that was started
 * (OpenInference does so). Beyond these numbers the least recently used are forgotten, which does not concern a parent
 * that is found as the object. Few of the ended are kept: each costs the garbage collector, and their children have, as
 * a rule, started.
 */
const OPEN_MAX = 10_000;
const ENDED_MAX = 1_000;

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
  /** The call of a model that the span was left out for, as that has a run already. */
  readonly call?: ToldCall;
  /** Called when the span has been open for a while. */
  letGo?(): void;
}

type GivenEntry = SpanEntry | LateEntry;

/** The spans that one processor has seen start. Holds on to none of them for long. */
export class SpanRegistry {
  readonly #bySpan = new WeakMap<object, GivenEntry>();
  readonly #open = new Map<string, GivenEntry>();
  readonly #ended = new Map<string, GivenEntry>();
  #timer: NodeJS.Timeout | undefined;

  add(span: SpanKey, entry: GivenEntry): void {
    this.#bySpan.set(span, entry);
    setLatest(this.#open, idsOf(span), entry, OPEN_MAX);
    this.#timer ??= setTimer(() => this.#letGo(), HELD_MS).unref();
  }

  /** Notes that the span has ended, and gives what was added for it. */
  end(span: SpanKey): SpanEntry | undefined {
    const ids = idsOf(span);
    const entry = this.#bySpan.get(span) ?? this.#open.get(ids);
    if (entry === undefined) return undefined;
    this.#open.delete(ids);
    setLatest(this.#ended, ids, entry, ENDED_MAX);
    return made(entry);
  }

  /** What was added for this very object. */
  get(span: object): SpanEntry | undefined {
    return made(this.#bySpan.get(span));
  }

  /** The same, or what was added for a span of the same ids. */
  find(span: SpanKey): SpanEntry | undefined {
    const entry = this.#bySpan.get(span);
    if (entry !== undefined) return made(entry);
    const ids = idsOf(span);
    return made(used(this.#open, ids) ?? used(this.#ended, ids));
  }

  /** From now on spans are found as the objects alone. */
  forgetIds(): void {
    this.#open.clear();
    this.#ended.clear();
  }

  #letGo(): void {
    this.#timer = undefined;
    for (const entry of this.#open.values()) made(entry)?.letGo?.();
  }

  /** The latest entries. */
  *entries(): Iterable<SpanEntry> {
    for (const entries of [this.#ended, this.#open]) {
      for (const given of entries.values()) {
        const entry = made(given);
        if (entry !== undefined) yield entry;
      }
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

/** A map keeps its keys in the order in which they were set: the first is the one that was not used for longest. */
function setLatest(map: Map<string, GivenEntry>, ids: string, entry: GivenEntry, countMax: number): void {
  map.delete(ids);
  map.set(ids, entry);
  if (map.size <= countMax) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

function used(map: Map<string, GivenEntry>, ids: string): GivenEntry | undefined {
  const entry = map.get(ids);
  if (entry !== undefined) setLatest(map, ids, entry, map.size);
  return entry;
}
