import { DeadlineError, NoAnswerError } from '../http/errors.ts';
import { EventStream, type EventStreamItem, EventTooLongError } from '../http/event-stream.ts';
import type { Api } from './api.ts';
import type { Call } from './call.ts';
import { SeenEvents } from './seen-events.ts';
import { FeedBreak, type StreamCall, StreamConnection } from './stream-connection.ts';
import { missedEvents, type ThreadEvent } from './thread-event.ts';
import { threadEventOf } from './thread-event-form.ts';

/** Heartbeats after which a connection counts as one that works, though it brings no event. */
const WORKING_HEARTBEATS = 3;

/** How long the last event may take to come again, and how many heartbeats may come ahead of it. */
const PROOF_MS = 5_000;
const PROOF_HEARTBEATS = 1;

export interface ThreadFeedOptions {
  /** The call whose answer is the stream; its body says which events are wanted. */
  readonly call: Call & { readonly body: Readonly<Record<string, unknown>> };
  readonly idleTimeoutMs: number;
  /** Only events behind this place. */
  readonly since: number | undefined;
  /** Whether they are of one run, which a server that has lost them never ends. */
  readonly isOfRun: boolean;
  /** The same by the id of an event, for a server that knows it. */
  readonly lastEventId: string | undefined;
}

/** An event, and the id by which the stream goes on behind it. */
export interface SentEvent<Values> {
  readonly event: ThreadEvent<Values>;
  readonly id: string | undefined;
}

/**
 * The events of a thread over as many connections as it takes, each of them once. A server never ends such a stream by itself, so
 * that an end is a break, and tells all events that are asked for on each connection, old ones first.
 *
 * After a break it is asked for the last event that was given and all behind it. That event comes first where the server has kept
 * its events; where it does not, the numbers of events may have begun anew, and all of them are asked for.
 */
export class ThreadFeed<Values> {
  readonly #connection: StreamConnection;
  readonly #options: ThreadFeedOptions;
  readonly #seen: SeenEvents;
  /** Whether the last event has to come again first. */
  #isUnproven = false;
  /** Whether the numbers of events may have begun anew. */
  #isDoubtful = false;
  /** Of the last event, and of the one before it. */
  #ids: readonly [before: string | undefined, last: string | undefined] = [undefined, undefined];

  static async open<Values>(api: Api, options: ThreadFeedOptions): Promise<ThreadFeed<Values>> {
    const first = streamCall(options, { since: options.since, lastId: options.lastEventId });
    return new ThreadFeed<Values>(options, await StreamConnection.open(api, first, options.idleTimeoutMs));
  }

  private constructor(options: ThreadFeedOptions, connection: StreamConnection) {
    this.#options = options;
    this.#connection = connection;
    this.#seen = new SeenEvents(options.since);
  }

  /** The highest `seq` of the events that were read. */
  get lastSeq(): number | undefined {
    return this.#seen.highestSeq;
  }

  close(): void {
    this.#connection.close();
  }

  /**
   * The events, to be read once, until it is closed. It throws a FeedBreak, or the reason of the caller's signal. Nothing is read
   * ahead of what is asked for, but for the chunk in hand.
   */
  async *events(): AsyncGenerator<SentEvent<Values>, void, undefined> {
    try {
      for (;;) {
        const problem = yield* this.#read();
        await this.#connection.again(problem, () => this.#goingOn());
      }
    } catch (thrown) {
      const end = this.#connection.endOf(thrown);
      if (end !== undefined) throw end.error;
    } finally {
      this.close();
    }
  }

  /** The events of one connection that are new; returns what ended it. */
  async *#read(): AsyncGenerator<SentEvent<Values>, unknown, undefined> {
    const stream = new EventStream();
    let heartbeats = 0;
    for (;;) {
      let items: EventStreamItem[];
      try {
        const chunk = await this.#connection.next(this.#isUnproven ? PROOF_MS : undefined);
        if (chunk === undefined) return closed(stream);
        items = stream.feed(chunk);
      } catch (thrown) {
        if (this.#connection.isEnding || thrown instanceof EventTooLongError) throw thrown;
        return this.#isUnproven && thrown instanceof DeadlineError ? this.#doubt() : thrown;
      }
      for (const item of items) {
        this.#connection.heed(item);
        if (item.kind === 'comment' && ++heartbeats >= WORKING_HEARTBEATS) this.#works();
        if (this.#isUnproven && heartbeats > PROOF_HEARTBEATS) return this.#doubt();
        if (item.kind !== 'event') continue;
        const event = threadEventOf<Values>(item.event);
        if (this.#isUnproven && !this.#proves(event)) return this.#doubt();
        this.#isDoubtful = false;
        if (!this.#seen.take(event)) continue;
        this.#connection.worked();
        const id = item.event.id === '' ? undefined : item.event.id;
        this.#ids = [this.#ids[1], id];
        yield { event, id };
      }
    }
  }

  /** Nothing comes any more of a run whose events the server, which is there, has lost: it has been started anew. */
  #works(): void {
    if (this.#isDoubtful && this.#options.isOfRun)
      throw new FeedBreak('the server has lost its events', 'it was ended');
    this.#connection.worked();
  }

  /** Whether the server goes on where the last connection broke. What has no place says nothing of that. */
  #proves(event: ThreadEvent<Values>): boolean {
    if (event.seq === undefined && missedEvents(event) === undefined) return true;
    this.#isUnproven = !(this.#seen.isHighest(event) || missedEvents(event) !== undefined);
    return !this.#isUnproven;
  }

  #doubt(): NoAnswerError {
    this.#isDoubtful = true;
    return new NoAnswerError('it did not go on where it broke');
  }

  /** The call that goes on after a break. */
  #goingOn(): StreamCall {
    const { since, lastEventId } = this.#options;
    const { lastSeq } = this;
    this.#isUnproven = lastSeq !== undefined && !this.#isDoubtful;
    if (this.#isUnproven) return streamCall(this.#options, { since: (lastSeq ?? 0) - 1, lastId: this.#ids[0] });
    if (lastSeq !== undefined) return streamCall(this.#options, { lastId: lastEventId });
    return streamCall(this.#options, { since, lastId: this.#ids[1] ?? lastEventId });
  }
}

function closed({ isWithinEvent }: EventStream): NoAnswerError {
  return new NoAnswerError(isWithinEvent ? 'it was closed within an event' : 'it was closed');
}

function streamCall(
  { call }: ThreadFeedOptions,
  { since, lastId }: { readonly since?: number | undefined; readonly lastId: string | undefined },
): StreamCall {
  const body = since === undefined || since < 0 ? call.body : { ...call.body, since };
  return { call: { ...call, body, isIdempotent: true }, lastId };
}
