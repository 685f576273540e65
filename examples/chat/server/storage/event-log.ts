import type { EventPage, NewEvent, SessionLimits, StoredEvent } from './session-store.ts';

/** The events of one thread, in memory: the last of them, as far as there is room. */
export class EventLog {
  #events: StoredEvent[] = [];
  /** Where the first one stands that is kept; those before it are taken away at times, all at once. */
  #head = 0;
  #bytes = 0;
  readonly #limits: SessionLimits;
  #lastSeq: number;
  #droppedThrough = 0;

  /** The events come after a number. */
  constructor(limits: SessionLimits, lastSeq: number) {
    this.#limits = limits;
    this.#lastSeq = lastSeq;
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
    const { eventsMax, bytesMax } = this.#limits;
    while (this.#events.length - this.#head > eventsMax || this.#bytes > bytesMax) {
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
