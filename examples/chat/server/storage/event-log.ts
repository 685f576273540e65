import {
  BYTES_PER_THREAD_MAX,
  EVENTS_PER_THREAD_MAX,
  type EventPage,
  firstSeq,
  type NewEvent,
  type StoredEvent,
} from './session-store.ts';

/** The events of one thread, in memory: the last of them, as far as there is room. */
export class EventLog {
  #events: StoredEvent[] = [];
  /** Where the first one stands that is kept; those before it are taken away at times, all at once. */
  #head = 0;
  #bytes = 0;
  #lastSeq: number;
  #droppedThrough = 0;

  constructor(nowMs: number) {
    this.#lastSeq = firstSeq(nowMs);
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  append(events: readonly NewEvent[]): void {
    for (const event of events) {
      this.#lastSeq += 1;
      this.#events.push({ ...event, seq: this.#lastSeq });
      this.#bytes += event.body.length;
    }
    this.#trim();
  }

  read(after: number, limit: number): EventPage {
    const first = this.#events[this.#head]?.seq ?? 0;
    const begin = this.#head + Math.max(0, after + 1 - first);
    return { events: this.#events.slice(begin, begin + limit), droppedThrough: this.#droppedThrough };
  }

  #trim(): void {
    while (this.#events.length - this.#head > EVENTS_PER_THREAD_MAX || this.#bytes > BYTES_PER_THREAD_MAX) {
      const dropped = this.#events[this.#head];
      if (dropped === undefined) break;
      this.#head += 1;
      this.#bytes -= dropped.body.length;
      this.#droppedThrough = dropped.seq;
    }
    if (this.#head <= 1_000 || this.#head < this.#events.length / 2) return;
    this.#events = this.#events.slice(this.#head);
    this.#head = 0;
  }
}
