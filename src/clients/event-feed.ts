import { setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import { clearTimer, setTimer } from '../base/timers.ts';
import type { OpenAnswer } from '../http/client.ts';
import { EventStream, EventTooLongError, type ServerSentEvent } from '../http/event-stream.ts';
import { DeadlineError, failureOf, NoAnswerError } from '../http/failure.ts';
import { isTransient } from '../http/retry-policy.ts';
import type { Api } from './api.ts';
import { ApiError, InvalidAnswerError } from './api-error.ts';
import type { Call } from './call.ts';
import type { CallOptions } from './client-options.ts';

/** How often it connects again without an event in between. */
const RESUMPTIONS_MAX = 5;

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;
/** The most of what a server may ask for by `retry`. */
const ASKED_DELAY_MAX_MS = 30_000;

/** Silence of a server that has sent heartbeats, which come every few seconds, after which the connection counts as dead. */
const HEARTBEAT_SILENCE_MS = 60_000;

const CLOSED = 'the client is closed';

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

/** A stream broke and does not go on. */
export class FeedBreak extends Error {
  override readonly name: string = 'FeedBreak';
  readonly outlook: string;

  constructor(problem: string, outlook: string, options?: ErrorOptions) {
    super(problem, options);
    this.outlook = outlook;
  }
}

/** The events of a stream over as many connections as it takes. What is sent twice after a break is given once. */
export class EventFeed {
  readonly #api: Api;
  readonly #options: FeedOptions;
  readonly #signal: AbortSignal | undefined;
  /** Ends what is under way: with the caller's reason, or because nobody reads any more. */
  readonly #ending: AbortController;
  readonly #abort: () => void;
  /** Of the first answer. */
  readonly headers: OpenAnswer['headers'];
  #body: Readable;
  #state: 'open' | 'closed' = 'open';
  /** Set when an event has told that the run has ended: after it a break is the end. */
  isOver = false;
  #lastId: string;
  #sawEvent = false;
  #sawHeartbeat = false;
  #resumptions = 0;
  #askedDelayMs = FIRST_DELAY_MS;

  /** Sends the call, and resolves when the head of its answer has come. */
  static async open(api: Api, options: FeedOptions): Promise<EventFeed> {
    const { signal } = options.call.options ?? {};
    const ending = new AbortController();
    const abort = (): void => ending.abort(signal?.reason);
    // One signal for many streams is no leak, of which Node would warn at the eleventh.
    if (signal !== undefined) setMaxListeners(0, signal);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      const lastId = options.lastEventId;
      const head = await send(api, options.call, options.call.options, lastId, ending.signal);
      return new EventFeed(api, options, head, ending, abort);
    } catch (thrown) {
      signal?.removeEventListener('abort', abort);
      throw thrown;
    }
  }

  private constructor(api: Api, options: FeedOptions, head: OpenAnswer, ending: AbortController, abort: () => void) {
    this.#api = api;
    this.#options = options;
    this.#signal = options.call.options?.signal;
    this.#ending = ending;
    this.#abort = abort;
    this.headers = head.headers;
    this.#lastId = options.lastEventId ?? '';
    this.#body = quiet(head.body);
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Ends the connection, and the iteration with it. */
  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#ending.abort();
    this.#body.destroy();
  }

  /**
   * The events, to be read once. It ends with the stream or when it is closed; it throws a FeedBreak, or the reason of the
   * caller's signal. Nothing is read ahead of what is asked for, but for the chunk in hand.
   */
  async *events(): AsyncGenerator<ServerSentEvent, void, undefined> {
    try {
      for (;;) {
        const problem = yield* this.#connection();
        if (problem === undefined || this.isOver) return;
        await this.#resume(problem);
      }
    } catch (thrown) {
      if (this.#signal?.aborted) throw this.#signal.reason;
      if (!this.isClosed) throw thrown;
    } finally {
      this.close();
    }
  }

  /** The events of one connection; undefined when that ends as it should, else what broke it off. */
  async *#connection(): AsyncGenerator<ServerSentEvent, unknown, undefined> {
    const stream = new EventStream(this.#lastId);
    const known = this.#lastId;
    const chunks = this.#body[Symbol.asyncIterator]();
    let isFirst = true;
    for (;;) {
      let items: ReturnType<EventStream['feed']>;
      try {
        const chunk = await this.#next(chunks);
        if (chunk === undefined) return this.#cutShort(stream);
        items = stream.feed(chunk);
      } catch (thrown) {
        if (this.#ending.signal.aborted || thrown instanceof EventTooLongError) throw thrown;
        return thrown;
      }
      for (const item of items) {
        if (item.kind === 'comment') this.#sawHeartbeat = true;
        if (item.kind === 'retry') this.#askedDelayMs = Math.min(item.ms, ASKED_DELAY_MAX_MS);
        if (item.kind !== 'event') continue;
        const isRepeated = isFirst && item.event.hasOwnId && known !== '' && item.event.id === known;
        isFirst = false;
        if (isRepeated) continue;
        this.#lastId = item.event.id;
        this.#sawEvent = true;
        this.#resumptions = 0;
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

  async #next(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
    const { idleTimeoutMs } = this.#options;
    const silenceMs = this.#sawHeartbeat ? Math.min(idleTimeoutMs, HEARTBEAT_SILENCE_MS) : idleTimeoutMs;
    const body = this.#body;
    const timer = setTimer(() => body.destroy(new DeadlineError(`nothing came for ${silenceMs} ms`)), silenceMs);
    try {
      const step = await chunks.next();
      return step.done === true ? undefined : step.value;
    } finally {
      clearTimer(timer);
    }
  }

  /** Connects again, where the server offers it, by a call that makes nothing. */
  async #resume(thrown: unknown): Promise<void> {
    const problem = failureOf(thrown).detail;
    const { call } = this.#options;
    const resumption = this.#options.resumption();
    const outlook = this.#whyNot(resumption);
    if (outlook !== undefined) throw new FeedBreak(problem, outlook, { cause: thrown });
    const { path, query } = resumption as Resumption;
    for (;;) {
      if (++this.#resumptions > RESUMPTIONS_MAX)
        throw new FeedBreak(problem, `it did not go on in ${RESUMPTIONS_MAX} attempts`, { cause: thrown });
      const again: Call = { name: call.name, method: 'GET', path, ...(query && { query }) };
      try {
        await this.#api.wait(this.#delayMs(), this.#ending.signal);
        // Of a run that was just made every event is wanted.
        const lastId = this.#lastId === '' && call.method === 'POST' ? '-1' : this.#lastId;
        this.#body = quiet((await send(this.#api, again, call.options, lastId, this.#ending.signal)).body);
        return;
      } catch (refused) {
        if (this.#ending.signal.aborted) throw refused;
        if (this.#api.isClosed) throw new FeedBreak(problem, CLOSED, { cause: thrown });
        const isFinal = refused instanceof ApiError && !isTransient(refused.status);
        if (isFinal || refused instanceof InvalidAnswerError)
          throw new FeedBreak(problem, `it does not go on: ${refused.message}`, { cause: refused });
      }
    }
  }

  #whyNot(resumption: Resumption | undefined): string | undefined {
    if (this.#api.isClosed) return CLOSED;
    if (resumption === undefined) return 'the server keeps no events of it, so it cannot go on';
    return this.#sawEvent && this.#lastId === '' ? 'its last event has no id, so it cannot go on' : undefined;
  }

  #delayMs(): number {
    const doubled = this.#askedDelayMs * 2 ** (this.#resumptions - 1);
    return Math.min(doubled, Math.max(this.#askedDelayMs, LONGEST_DELAY_MS)) + Math.random() * FIRST_DELAY_MS;
  }
}

async function send(
  api: Api,
  call: Call,
  options: CallOptions | undefined,
  lastId: string | undefined,
  signal: AbortSignal,
): Promise<OpenAnswer> {
  const headers = {
    accept: 'text/event-stream',
    'cache-control': 'no-store',
    ...call.headers,
    ...(lastId === undefined || lastId === '' ? {} : { 'last-event-id': lastId }),
  };
  const head = await api.open({ ...call, headers, options: { ...options, signal } });
  const type = String(head.headers['content-type'] ?? '');
  if (/^text\/event-stream\b/i.test(type)) return head;
  quiet(head.body).destroy();
  throw new InvalidAnswerError(api.factsOf(call), head, 'is no stream of events');
}

/** What breaks a body off is told to its reader; without one it would end the process. */
function quiet(body: Readable): Readable {
  return body.on('error', () => {});
}
