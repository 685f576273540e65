import { createParser, type EventSourceParser } from 'eventsource-parser';

const EVENT_CHARACTERS_MAX = 64 * 1024 * 1024;

export interface ServerSentEvent {
  /** @default 'message' */
  readonly name: string;
  readonly data: string;
  /** The id of this event, or of the latest earlier event that had one. Empty if no event had an id. */
  readonly id: string;
  readonly hasOwnId: boolean;
}

export type EventStreamItem =
  | { readonly kind: 'event'; readonly event: ServerSentEvent }
  /** A comment line. Servers send comments as heartbeats. */
  | { readonly kind: 'comment'; readonly text: string }
  /** The server asks the client to wait `ms` milliseconds before reconnecting. */
  | { readonly kind: 'retry'; readonly ms: number };

export class EventTooLongError extends Error {
  override readonly name: string = 'EventTooLongError';
}

/**
 * Parses server-sent events from chunks of bytes (WHATWG HTML, 9.2.6). `eventsource-parser` parses the fields. This
 * class splits the chunks into lines, removes a byte order mark and tracks the last id. Ignores an incomplete event at
 * the end of the stream.
 */
export class EventStream {
  // Without `ignoreBOM`, Node 24 removes two byte order marks if the first chunk ends after the first mark.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #parser: EventSourceParser;
  readonly #charactersMax: number;
  /** The incomplete line at the end of the last chunk. */
  #line = '';
  /** Number of characters in the current event's complete lines. */
  #characters = 0;
  #hasBegun = false;
  #isFirstText = true;
  #endedByCr = false;
  #lastId: string;
  /** The id that becomes `#lastId` once the current event is complete. */
  #nextId: string;
  #items: EventStreamItem[] = [];

  /** `lastId` is the previous connection's last id. */
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
    // The parser removes a byte order mark from its first chunk. An empty first chunk prevents this, because
    // `EventStream` removes the mark itself.
    this.#parser.feed('');
  }

  get isWithinEvent(): boolean {
    return this.#hasBegun || (this.#line !== '' && !this.#line.startsWith(':'));
  }

  /** Returns the items that this chunk completes. Throws an `EventTooLongError` if an event is too long. */
  feed(chunk: Uint8Array): EventStreamItem[] {
    this.#items = [];
    let text = this.#decoder.decode(chunk, { stream: true });
    // The chunk contains only part of a character.
    if (text === '') return this.#items;
    if (this.#isFirstText && text.startsWith('\uFEFF')) text = text.slice(1);
    this.#isFirstText = false;
    // CR LF is one line break, even if one chunk ends with CR and the next chunk begins with LF.
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
    // Reads the last id here, because an event without data also sets it, and the parser does not report such an event.
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
