import { createParser, type EventSourceParser } from 'eventsource-parser';

const EVENT_CHARACTERS_MAX = 64 * 1024 * 1024;

export interface ServerSentEvent {
  /** @default 'message' */
  readonly name: string;
  readonly data: string;
  /** Id of this event, or of the last event with an id. Empty if no event had an id. */
  readonly id: string;
  readonly hasOwnId: boolean;
}

export type EventStreamItem =
  | { readonly kind: 'event'; readonly event: ServerSentEvent }
  /** A comment line. Servers often send comments as heartbeats. */
  | { readonly kind: 'comment'; readonly text: string }
  /** The server's reconnection delay, in milliseconds. */
  | { readonly kind: 'retry'; readonly ms: number };

export class EventTooLongError extends Error {
  override readonly name: string = 'EventTooLongError';
}

/**
 * Parses server-sent events (WHATWG HTML, 9.2.6) from chunks of bytes. `eventsource-parser` parses the fields. This
 * class splits chunks into lines, removes the byte order mark and tracks the last event id. An incomplete event at the
 * end of the stream is ignored.
 */
export class EventStream {
  // Without `ignoreBOM`, Node 24 removes a second byte order mark if the first chunk contains only the first one.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #parser: EventSourceParser;
  readonly #charactersMax: number;
  /** Incomplete line at the end of the last chunk. */
  #line = '';
  /** Number of characters in the current event's complete lines. */
  #characters = 0;
  #hasBegun = false;
  #isFirstText = true;
  #endedByCr = false;
  #lastId: string;
  /** Last event id that applies when the current event is complete. */
  #nextId: string;
  #items: EventStreamItem[] = [];

  /** `lastId` is the last event id of the previous connection. */
  constructor(lastId = '', charactersMax: number = EVENT_CHARACTERS_MAX) {
    this.#lastId = lastId;
    this.#nextId = lastId;
    this.#charactersMax = charactersMax;
    this.#parser = createParser({
      onEvent: ({ event: name = 'message', data, id }) =>
        this.#items.push({ kind: 'event', event: { name, data, id: this.#lastId, hasOwnId: id !== undefined } }),
      onComment: (text) => this.#items.push({ kind: 'comment', text }),
      onRetry: (ms) => this.#items.push({ kind: 'retry', ms }),
    });
    // The empty chunk prevents `eventsource-parser` from removing a byte order mark, which `EventStream` has already
    // removed.
    this.#parser.feed('');
  }

  get isWithinEvent(): boolean {
    return this.#hasBegun || (this.#line !== '' && !this.#line.startsWith(':'));
  }

  /**
   * Parses a chunk, and returns all items that are now complete. Throws an `EventTooLongError` if an event is too long.
   */
  feed(chunk: Uint8Array): EventStreamItem[] {
    this.#items = [];
    let text = this.#decoder.decode(chunk, { stream: true });
    // The text is empty if the chunk contains only part of a character.
    if (text === '') return this.#items;
    if (this.#isFirstText && text.startsWith('\uFEFF')) text = text.slice(1);
    this.#isFirstText = false;
    // CR LF is a single line break, even if a chunk ends between CR and LF.
    if (this.#endedByCr && text.startsWith('\n')) text = text.slice(1);
    this.#endedByCr = text.endsWith('\r');
    const lines = text.split(/\r\n?|\n/);
    const rest = lines.pop() ?? '';
    for (const line of lines) {
      this.#take(this.#line + line);
      this.#line = '';
    }
    this.#line += rest;
    this.#limit(this.#line.length);
    return this.#items;
  }

  #take(line: string): void {
    this.#characters = line === '' ? 0 : this.#characters + (line.startsWith(':') ? 0 : line.length);
    this.#limit(line.startsWith(':') ? line.length : 0);
    // An event without data also sets the last event id, but `eventsource-parser` does not report such an event.
    const [, id] = /^id(?::[ ]?(.*))?$/s.exec(line) ?? [undefined, undefined];
    if (line === 'id' || (id !== undefined && !id.includes('\0'))) this.#nextId = id ?? '';
    if (line === '') this.#lastId = this.#nextId;
    this.#hasBegun = line !== '' && (this.#hasBegun || /^(?:data|event)(?::|$)/.test(line));
    this.#parser.feed(`${line}\n`);
  }

  #limit(begun: number): void {
    if (this.#characters + begun <= this.#charactersMax) return;
    throw new EventTooLongError(`an event has more than ${this.#charactersMax} characters`);
  }
}
