import type { OpenAnswer } from '../http/client.ts';
import { failureOf, NoAnswerError } from '../http/errors.ts';
import { EventStream, EventTooLongError, type ServerSentEvent } from '../http/event-stream.ts';
import type { Api } from './api.ts';
import type { Call } from './call.ts';
import { FeedBreak, type StreamCall, StreamConnection } from './stream-connection.ts';

/** Where a stream goes on after a break. */
export interface Resumption {
  readonly path: string;
  readonly query?: Call['query'];
}

export interface FeedOptions {
  /** The call whose answer is the stream. */
  readonly call: Call;
  /** Milliseconds without a byte after which the connection counts as dead. */
  readonly idleTimeoutMs: number;
  /** The id that the stream goes on from, where it does. */
  readonly lastEventId: string | undefined;
  /** Where the stream goes on after a break, by what is known then; undefined where the server does not offer it. */
  readonly resumption: () => Resumption | undefined;
}

/** The events of a stream over as many connections as it takes. What is sent twice after a break is given once. */
export class EventFeed {
  readonly #connection: StreamConnection;
  readonly #options: FeedOptions;
  /** Set when an event has told that the run has ended: after it a break is the end. */
  isOver = false;
  #lastId: string;
  #sawEvent = false;

  /** Sends the call, and resolves when the head of its answer has come. */
  static async open(api: Api, options: FeedOptions): Promise<EventFeed> {
    const { call, lastEventId: lastId, idleTimeoutMs } = options;
    return new EventFeed(options, await StreamConnection.open(api, { call, lastId }, idleTimeoutMs));
  }

  private constructor(options: FeedOptions, connection: StreamConnection) {
    this.#options = options;
    this.#connection = connection;
    this.#lastId = options.lastEventId ?? '';
  }

  /** Of the first answer. */
  get headers(): OpenAnswer['headers'] {
    return this.#connection.headers;
  }

  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  /** Ends the connection, and the iteration with it. */
  close(): void {
    this.#connection.close();
  }

  /**
   * The events, to be read once. It ends with the stream or when it is closed; it throws a FeedBreak, or the reason of the
   * caller's signal. Nothing is read ahead of what is asked for, but for the chunk in hand.
   */
  async *events(): AsyncGenerator<ServerSentEvent, void, undefined> {
    try {
      for (;;) {
        const problem = yield* this.#read();
        if (problem === undefined || this.isOver) return;
        await this.#resume(problem);
      }
    } catch (thrown) {
      const end = this.#connection.endOf(thrown);
      if (end !== undefined) throw end.error;
    } finally {
      this.close();
    }
  }

  /** The events of one connection; undefined when that ends as it should, else what broke it off. */
  async *#read(): AsyncGenerator<ServerSentEvent, unknown, undefined> {
    const stream = new EventStream(this.#lastId);
    const known = this.#lastId;
    let isFirst = true;
    for (;;) {
      let items: ReturnType<EventStream['feed']>;
      try {
        const chunk = await this.#connection.next();
        if (chunk === undefined) return this.#cutShort(stream);
        items = stream.feed(chunk);
      } catch (thrown) {
        if (this.#connection.isEnding || thrown instanceof EventTooLongError) throw thrown;
        return thrown;
      }
      for (const item of items) {
        this.#connection.heed(item);
        if (item.kind !== 'event') continue;
        const isRepeated = isFirst && item.event.hasOwnId && known !== '' && item.event.id === known;
        isFirst = false;
        if (isRepeated) continue;
        this.#lastId = item.event.id;
        this.#sawEvent = true;
        this.#connection.worked();
        yield item.event;
      }
    }
  }

  /** What is wrong with the end of a connection that was closed as it should be; nothing where the stream may have ended. */
  #cutShort({ isWithinEvent }: EventStream): NoAnswerError | undefined {
    if (isWithinEvent) return new NoAnswerError('it was closed within an event');
    // Of a run that was just made there is something to tell; one that is joined may be over.
    return this.#sawEvent || this.#options.call.method === 'GET' ? undefined : new NoAnswerError('it was closed');
  }

  /** Connects again, where the server offers it. */
  async #resume(thrown: unknown): Promise<void> {
    const resumption = this.#options.resumption();
    const outlook = this.#whyNot(resumption);
    if (outlook !== undefined) throw new FeedBreak(failureOf(thrown).detail, outlook, { cause: thrown });
    await this.#connection.again(thrown, () => this.#goingOn(resumption as Resumption));
  }

  #goingOn({ path, query }: Resumption): StreamCall {
    const { call } = this.#options;
    const again: Call = { name: call.name, method: 'GET', path, ...(query && { query }), options: call.options };
    // Of a run that was just made every event is wanted.
    const lastId = this.#lastId === '' && call.method === 'POST' ? '-1' : this.#lastId;
    return { call: again, lastId };
  }

  #whyNot(resumption: Resumption | undefined): string | undefined {
    if (this.#connection.whyOver !== undefined) return this.#connection.whyOver;
    if (resumption === undefined) return 'the server keeps no events of it, so it cannot go on';
    return this.#sawEvent && this.#lastId === '' ? 'its last event has no id, so it cannot go on' : undefined;
  }
}
