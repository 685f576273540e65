import { monotonicNowMs } from '../../base/clock.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import type { RunSink } from '../../run/sink.ts';
import type { SpanLike } from '../span-like.ts';
import type { SpanKey } from './span-registry.ts';

/** An ended span that waits for its parent to be exported. */
export interface WaitingSpan {
  readonly span: SpanLike;
  /** Ids of the parent span, as returned by `idsOf`. */
  readonly parent: string;
  readonly sink: RunSink;
}

/** Limits for spans that wait for their parents. */
const AGE_MAX_MS = 300_000;
const SPANS_MAX = 10_000;

/** Maximum number of characters in the attributes and events of all waiting spans together. */
const CHARACTERS_MAX = 64 * 1_024 * 1_024;

interface Entry extends WaitingSpan {
  readonly ids: string;
  readonly sinceMs: number;
  readonly characters: number;
}

/**
 * Ended spans that wait for their parents to be exported, oldest first. The number, size and age of waiting spans are
 * limited.
 */
export class WaitingSpans {
  readonly #overdue: () => void;
  readonly #entries = new Set<Entry>();
  readonly #byIds = new Map<string, Entry>();
  readonly #byParent = new Map<string, Set<Entry>>();
  #characters = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Calls `overdue` when the oldest span exceeds the age limit. */
  constructor(overdue: () => void) {
    this.#overdue = overdue;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Whether the waiting spans exceed the number limit or the size limit. */
  get isOverfull(): boolean {
    return this.#entries.size > SPANS_MAX || this.#characters > CHARACTERS_MAX;
  }

  /** Whether the oldest span exceeds the age limit. */
  get isOverdue(): boolean {
    const [oldest] = this.#entries;
    return oldest !== undefined && this.#leftMs(oldest) <= 0;
  }

  add(waiting: WaitingSpan): void {
    const { span, parent, sink } = waiting;
    const sinceMs = monotonicNowMs();
    const entry = { span, parent, sink, ids: idsOf(span), sinceMs, characters: charactersOf(span) };
    this.#entries.add(entry);
    this.#byIds.set(entry.ids, entry);
    this.#characters += entry.characters;
    const siblings = this.#byParent.get(parent);
    if (siblings === undefined) this.#byParent.set(parent, new Set([entry]));
    else siblings.add(entry);
    this.#watch();
  }

  takeBelow(parent: string): WaitingSpan[] {
    const children = [...(this.#byParent.get(parent) ?? [])];
    for (const entry of children) this.#delete(entry);
    return children;
  }

  /**
   * Removes and returns the topmost waiting ancestor of the oldest span. If no ancestor is waiting, removes and returns
   * the oldest span.
   */
  takeTopOfOldest(): WaitingSpan | undefined {
    const [oldest] = this.#entries;
    if (oldest === undefined) return undefined;
    const passed = new Set([oldest]);
    let top = oldest;
    // The search stops at a cycle. Cycles are possible if an application sets ids.
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
    return sinceMs + AGE_MAX_MS - monotonicNowMs();
  }

  #watch(): void {
    const [oldest] = this.#entries;
    if (oldest === undefined || this.#timer !== undefined) return;
    this.#timer = setTimer(() => this.#sweep(), Math.max(1, this.#leftMs(oldest))).unref();
  }

  #sweep(): void {
    this.#timer = undefined;
    if (this.isOverdue) this.#overdue();
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

export function idsOf(span: SpanKey): string {
  const { traceId, spanId } = span.spanContext();
  return `${traceId}:${spanId}`;
}
