import { createParser, type EventSourceParser } from 'eventsource-parser';

/** Maximum characters of one event or comment. */
const EVENT_CHARACTERS_MAX = 64 * 1024 * 1024;

export interface ServerSentEvent {
  /** @default 'message' */
  readonly name: string;
  readonly data: string;
  /** The last id that was received with this event or an earlier event. Empty if no id was received. */
  readonly id: string;
  /** Whether the id was sent with this event. */
  readonly hasOwnId: boolean;
}

export type EventStreamItem =
  | { readonly kind: 'event'; readonly event: ServerSentEvent }
  /** A comment line, often sent as a heartbeat. */
  | { readonly kind: 'comment'; readonly text: string }
  /** The delay in milliseconds that the server requests before the client reconnects. */
  | { readonly kind: 'retry'; readonly ms: number };

export class EventTooLongError extends Error {
  override readonly name: string = 'EventTooLongError';
}

/**
 * Parses server-sent events from chunks of bytes (WHATWG HTML, 9.2.6). `eventsource-parser` parses the fields of each line. This
 * class joins characters and line breaks that are split between chunks, removes a byte order mark, and keeps the last id.
 * Incomplete data at the end of the stream is not an event.
 */
export class EventStream {
  // Without `ignoreBOM`, Node 24 removes two byte order marks if the first chunk ends after one.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #parser: EventSourceParser;
  readonly #charactersMax: number;
  /** The incomplete line. `#characters` counts the characters of complete lines of the current event. */
  #line = '';
  #characters = 0;
  #hasBegun = false;
  #isFirstText = true;
  #endedByCr = false;
  /** The id of the last event. `#nextId` is the id of the next event. */
  #lastId: string;
  #nextId: string;
  #items: EventStreamItem[] = [];

  /** `lastId` is the last id that the previous connection received. */
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
    // The parser removes a byte order mark only from its first chunk. `feed` has already removed the mark.
    this.#parser.feed('');
  }

  /** Whether the last event is incomplete. */
  get isWithinEvent(): boolean {
    return this.#hasBegun || (this.#line !== '' && !this.#line.startsWith(':'));
  }

  /** Returns the items that this chunk completes. Throws an EventTooLongError if an event is too long. */
  feed(chunk: Uint8Array): EventStreamItem[] {
    this.#items = [];
    let text = this.#decoder.decode(chunk, { stream: true });
    // The chunk contains only a part of a character.
    if (text === '') return this.#items;
    if (this.#isFirstText && text.startsWith('\uFEFF')) text = text.slice(1);
    this.#isFirstText = false;
    // CR LF is one line break, even if CR and LF are in different chunks.
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
    // The parser reports an id only with the event that contains the id, and only if the event has data.
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
