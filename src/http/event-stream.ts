import { createParser, type EventSourceParser } from 'eventsource-parser';

/** Characters of the lines of one event, or of one comment. */
const EVENT_CHARACTERS_MAX = 64 * 1024 * 1024;

/** An event as the HTML standard dispatches it. */
export interface ServerSentEvent {
  /** `message` where the stream gives none. */
  readonly name: string;
  readonly data: string;
  /** The last id that has come, with this event or before; empty where none has, or an empty one. */
  readonly id: string;
  /** Whether the id came with this event. */
  readonly hasOwnId: boolean;
}

/** What a chunk of a stream holds. */
export type EventStreamItem =
  | { readonly kind: 'event'; readonly event: ServerSentEvent }
  /** A line that says nothing, by which a server shows that it is there. */
  | { readonly kind: 'comment'; readonly text: string }
  /** How long a client is to wait before it connects again. */
  | { readonly kind: 'retry'; readonly ms: number };

/** An event is longer than a reader takes. */
export class EventTooLongError extends Error {
  override readonly name: string = 'EventTooLongError';
}

/**
 * Reads server-sent events from bytes, however they are cut (WHATWG HTML, 9.2.6). Fields are read by `eventsource-parser`, line by
 * line; what it leaves out is done here: characters cut in two, ends of lines cut in two, a byte order mark, and ids that last.
 * What follows the last blank line of a stream is no event.
 */
export class EventStream {
  // It would take a second byte order mark away on Node 24, where the first came in a chunk of its own.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #parser: EventSourceParser;
  readonly #charactersMax: number;
  /** The line that has begun, and the characters of the event that has, this line aside. */
  #line = '';
  #characters = 0;
  #hasBegun = false;
  #isFirstText = true;
  #endedByCr = false;
  /** Of the last event, and as the next one will have it. */
  #lastId: string;
  #nextId: string;
  #items: EventStreamItem[] = [];

  /** A stream that goes on from an earlier one begins with its last id. */
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
    // It takes three characters of the first chunk for a byte order mark; the real one is taken before.
    this.#parser.feed('');
  }

  /** Whether an event has begun that is not complete. */
  get isWithinEvent(): boolean {
    return this.#hasBegun || (this.#line !== '' && !this.#line.startsWith(':'));
  }

  /** What becomes complete by this chunk. Throws an EventTooLongError for an event beyond the limit. */
  feed(chunk: Uint8Array): EventStreamItem[] {
    this.#items = [];
    let text = this.#decoder.decode(chunk, { stream: true });
    // A part of a character.
    if (text === '') return this.#items;
    if (this.#isFirstText && text.startsWith('\uFEFF')) text = text.slice(1);
    this.#isFirstText = false;
    // Of CR and LF the second is no line of its own, though it may come with another chunk.
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
    // The parser forgets an id with the event that brought it, and those that come without one.
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
