/** Characters of events that wait for their reader. */
const WAITING_CHARACTERS_MAX = 1024 * 1024;

interface Waiting<Event> {
  readonly event: Event;
  readonly characters: number;
}

/** Events that were read before their reader asked for them. */
export class EventQueue<Event> {
  #waiting: Waiting<Event>[] = [];
  #head = 0;
  #characters = 0;
  #isOverrun = false;
  #wake: (() => void) | undefined;

  /** Whether nothing more should be read ahead. */
  get isFull(): boolean {
    return this.#characters >= WAITING_CHARACTERS_MAX;
  }

  /** Whether events were passed over, so that there is nothing left to iterate. */
  get isOverrun(): boolean {
    return this.#isOverrun;
  }

  put(event: Event, characters: number): void {
    if (this.#isOverrun) return;
    this.#waiting.push({ event, characters });
    this.#characters += characters;
  }

  take(): Event | undefined {
    const first = this.#waiting[this.#head];
    if (first === undefined) return undefined;
    this.#head++;
    this.#characters -= first.characters;
    if (this.#head === this.#waiting.length) this.clear();
    if (!this.isFull) this.release();
    return first.event;
  }

  clear(): void {
    this.#waiting = [];
    this.#head = 0;
    this.#characters = 0;
    this.release();
  }

  /** Gives up what waits, and all that comes: nobody reads it. */
  overrun(): void {
    this.#isOverrun = true;
    this.clear();
  }

  /** Resolves when there is room again, or none is needed any more. */
  room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  release(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
