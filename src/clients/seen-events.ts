import type { ThreadEvent } from './thread-event.ts';

/** Events by whose ids others are known again; those before are by their place. */
const WINDOW_EVENTS = 1_000;

type Facts = Pick<ThreadEvent<unknown>, 'event_id' | 'seq'> & {
  readonly params: { readonly timestamp?: number };
};

/**
 * Which events of a thread have been given, in bounded memory: the latest by their ids, all before by the highest `seq` of them.
 *
 *     seq   1 2 3 … 57 | 58 59 … 1057
 *           ≤ floor    | window, by id
 *
 * A server that keeps its events in memory alone counts from 1 again after a restart. Its new events have the numbers and ids of
 * earlier ones, but are later than any that was seen.
 */
export class SeenEvents {
  readonly #windowEvents: number;
  /** Each with its seq, the oldest first. */
  readonly #window = new Map<string, number | undefined>();
  #floor: number;
  #latestMs: number | undefined;
  #highest: Facts | undefined;

  /** Events up to `since` are not wanted. */
  constructor(since = -1, windowEvents: number = WINDOW_EVENTS) {
    this.#floor = since;
    this.#windowEvents = windowEvents;
  }

  /** The highest `seq` of the events that were taken. */
  get highestSeq(): number | undefined {
    return this.#highest?.seq;
  }

  /** Whether this is the event with the highest `seq` itself, sent again. */
  isHighest({ event_id, seq, params: { timestamp } }: Facts): boolean {
    const highest = this.#highest;
    if (highest === undefined || seq !== highest.seq || event_id !== highest.event_id) return false;
    return timestamp === highest.params.timestamp;
  }

  /** Takes an event; false where it was taken before. One that has neither an id nor a place is always new. */
  take(event: Facts): boolean {
    const { event_id, seq, params } = event;
    const key = event_id ?? (seq === undefined ? undefined : `#${seq}`);
    if (key === undefined) return true;
    const isKnown = this.#window.has(key) || (seq !== undefined && seq <= this.#floor);
    const { timestamp } = params;
    // What has no place, as what is told to be missed has none, is made anew each time and says nothing of the numbers.
    const isLater = seq !== undefined && timestamp !== undefined && timestamp > (this.#latestMs ?? timestamp);
    if (isKnown && !isLater) return false;
    if (isKnown) this.#beginAnew();
    if (timestamp !== undefined) this.#latestMs = Math.max(timestamp, this.#latestMs ?? timestamp);
    if (seq !== undefined && seq > (this.#highest?.seq ?? -1))
      this.#highest = { event_id, seq, params: { timestamp } } as Facts;
    this.#window.set(key, seq);
    if (this.#window.size > this.#windowEvents) this.#forget();
    return true;
  }

  #beginAnew(): void {
    this.#window.clear();
    this.#floor = -1;
    this.#highest = undefined;
  }

  #forget(): void {
    const [[key, seq] = ['', undefined]] = this.#window;
    this.#window.delete(key);
    if (seq !== undefined) this.#floor = Math.max(this.#floor, seq);
  }
}
