import { clearTimer, setTimer } from '../base/timers.ts';
import type { RunSink } from '../run/sink.ts';
import type { SpanLike } from './span-like.ts';
import type { SpanKey } from './span-registry.ts';

/** A span that has ended before its parent, and where its run will go. */
export interface WaitingSpan {
  readonly span: SpanLike;
  /** The ids of its parent, as `idsOf` writes them. */
  readonly parent: string;
  readonly sink: RunSink;
}

export interface WaitingSpansOptions {
  readonly spansMax: number;
  /** Of the text in their attributes and events together. */
  readonly charactersMax: number;
  readonly ageMaxMs: number;
  readonly monotonicMs: () => number;
  /** Called, from a timer, when there are some that have waited for too long. */
  readonly overdue: () => void;
}

interface Entry extends WaitingSpan {
  readonly ids: string;
  readonly sinceMs: number;
  readonly characters: number;
}

/** Finished spans whose parents are not known yet, oldest first, bounded in number, size and age. */
export class WaitingSpans {
  readonly #options: WaitingSpansOptions;
  readonly #entries = new Set<Entry>();
  readonly #byIds = new Map<string, Entry>();
  readonly #byParent = new Map<string, Set<Entry>>();
  #characters = 0;
  /** One timer, for the span that has waited for longest. */
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WaitingSpansOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Whether more wait than may. */
  get isOverfull(): boolean {
    return this.#entries.size > this.#options.spansMax || this.#characters > this.#options.charactersMax;
  }

  /** Whether the oldest has waited for too long. */
  get isOverdue(): boolean {
    const [oldest] = this.#entries;
    return oldest !== undefined && this.#leftMs(oldest) <= 0;
  }

  add(waiting: WaitingSpan): void {
    const { span, parent, sink } = waiting;
    const sinceMs = this.#options.monotonicMs();
    const entry = { span, parent, sink, ids: idsOf(span), sinceMs, characters: charactersOf(span) };
    this.#entries.add(entry);
    this.#byIds.set(entry.ids, entry);
    this.#characters += entry.characters;
    const siblings = this.#byParent.get(parent);
    if (siblings === undefined) this.#byParent.set(parent, new Set([entry]));
    else siblings.add(entry);
    this.#watch();
  }

  /** Those that wait for this parent. They are no longer there. */
  takeBelow(parent: string): WaitingSpan[] {
    const children = [...(this.#byParent.get(parent) ?? [])];
    for (const entry of children) this.#delete(entry);
    return children;
  }

  /** The topmost of those that the oldest waits for, itself if that is none of them. It is no longer there. */
  takeTopOfOldest(): WaitingSpan | undefined {
    const [oldest] = this.#entries;
    if (oldest === undefined) return undefined;
    const passed = new Set([oldest]);
    let top = oldest;
    // Ids that an application has given by hand may go round in circles.
    for (let above = this.#byIds.get(top.parent); above !== undefined; above = this.#byIds.get(top.parent)) {
      if (passed.has(above)) break;
      passed.add(above);
      top = above;
    }
    this.#delete(top);
    return top;
  }

  #delete(entry: Entry): void {
    this.#entries.delete(entry);
    if (this.#byIds.get(entry.ids) === entry) this.#byIds.delete(entry.ids);
    this.#characters -= entry.characters;
    const siblings = this.#byParent.get(entry.parent);
    siblings?.delete(entry);
    if (siblings?.size === 0) this.#byParent.delete(entry.parent);
    if (this.#entries.size > 0) return;
    clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #leftMs({ sinceMs }: Entry): number {
    return sinceMs + this.#options.ageMaxMs - this.#options.monotonicMs();
  }

  #watch(): void {
    const [oldest] = this.#entries;
    if (oldest === undefined || this.#timer !== undefined) return;
    this.#timer = setTimer(() => this.#sweep(), Math.max(1, this.#leftMs(oldest))).unref();
  }

  #sweep(): void {
    this.#timer = undefined;
    if (this.isOverdue) this.#options.overdue();
    this.#watch();
  }
}

function charactersOf({ attributes, events }: SpanLike): number {
  let characters = textIn(attributes);
  for (const event of events) characters += textIn(event.attributes);
  return characters;
}

function textIn(attributes: Readonly<Record<string, unknown>> | undefined): number {
  let characters = 0;
  for (const key in attributes) {
    const value = attributes[key];
    if (typeof value === 'string') characters += value.length;
  }
  return characters;
}

/** Returns the ids of a span as one text. */
export function idsOf(span: SpanKey): string {
  const { traceId, spanId } = span.spanContext();
  return `${traceId}:${spanId}`;
}
