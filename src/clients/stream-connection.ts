import { setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import { clearTimer, setTimer } from '../base/timers.ts';
import type { OpenAnswer } from '../http/client.ts';
import { DeadlineError, failureOf } from '../http/errors.ts';
import type { EventStreamItem } from '../http/event-stream.ts';
import { isTransient } from '../http/retry.ts';
import type { Api } from './api.ts';
import { ApiError, InvalidAnswerError } from './api-error.ts';
import type { Call } from './call.ts';

/** How often it connects again without an event in between. */
const RESUMPTIONS_MAX = 5;

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;
/** The most of what a server may ask for by `retry`. */
const ASKED_DELAY_MAX_MS = 30_000;

/** Silence of a server that has sent heartbeats, which come every few seconds, after which the connection counts as dead. */
const HEARTBEAT_SILENCE_MS = 60_000;

const CLOSED = 'the client is closed';

/** A stream broke and does not go on. */
export class FeedBreak extends Error {
  override readonly name: string = 'FeedBreak';
  readonly outlook: string;

  constructor(problem: string, outlook: string, options?: ErrorOptions) {
    super(problem, options);
    this.outlook = outlook;
  }
}

/** A call whose answer is a stream, and the id of the event that it goes on from; empty or undefined where it does not. */
export interface StreamCall {
  readonly call: Call;
  readonly lastId: string | undefined;
}

/** The connection that a stream comes by, which is made again after breaks. Its reader knows what it goes on from. */
export class StreamConnection {
  readonly #api: Api;
  readonly #idleTimeoutMs: number;
  readonly #signal: AbortSignal | undefined;
  /** Ends what is under way: with the caller's reason, or because nobody reads any more. */
  readonly #ending: AbortController;
  readonly #abort: () => void;
  /** Of the first answer. */
  readonly headers: OpenAnswer['headers'];
  #body: Readable;
  #chunks: AsyncIterator<Uint8Array>;
  #state: 'open' | 'closed' = 'open';
  #sawHeartbeat = false;
  #resumptions = 0;
  #askedDelayMs = FIRST_DELAY_MS;

  /** Sends the call, and resolves when the head of its answer has come. */
  static async open(api: Api, stream: StreamCall, idleTimeoutMs: number): Promise<StreamConnection> {
    const { signal } = stream.call.options ?? {};
    const ending = new AbortController();
    const abort = (): void => ending.abort(signal?.reason);
    // One signal for many streams is no leak, of which Node would warn at the eleventh.
    if (signal !== undefined) setMaxListeners(0, signal);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    try {
      const head = await send(api, stream, ending.signal);
      return new StreamConnection(api, head, { idleTimeoutMs, signal, ending, abort });
    } catch (thrown) {
      signal?.removeEventListener('abort', abort);
      throw thrown;
    }
  }

  private constructor(
    api: Api,
    head: OpenAnswer,
    {
      idleTimeoutMs,
      signal,
      ending,
      abort,
    }: {
      readonly idleTimeoutMs: number;
      readonly signal: AbortSignal | undefined;
      readonly ending: AbortController;
      readonly abort: () => void;
    },
  ) {
    this.#api = api;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#signal = signal;
    this.#ending = ending;
    this.#abort = abort;
    this.headers = head.headers;
    this.#body = quiet(head.body);
    this.#chunks = this.#body[Symbol.asyncIterator]();
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Whether it was closed, or the caller's signal aborted. */
  get isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#ending.abort();
    this.#body.destroy();
  }

  /** What comes next; undefined where the server has ended it. Silence beyond the idle time, or sooner if asked for, is an error. */
  async next(silenceMaxMs: number = Number.POSITIVE_INFINITY): Promise<Uint8Array | undefined> {
    const idleMs = this.#sawHeartbeat ? Math.min(this.#idleTimeoutMs, HEARTBEAT_SILENCE_MS) : this.#idleTimeoutMs;
    const silenceMs = Math.min(idleMs, silenceMaxMs);
    const body = this.#body;
    const timer = setTimer(() => body.destroy(new DeadlineError(`nothing came for ${silenceMs} ms`)), silenceMs);
    try {
      const step = await this.#chunks.next();
      return step.done === true ? undefined : step.value;
    } finally {
      clearTimer(timer);
    }
  }

  /** What comes beside events says how long to wait. */
  heed(item: EventStreamItem): void {
    if (item.kind === 'comment') this.#sawHeartbeat = true;
    if (item.kind === 'retry') this.#askedDelayMs = Math.min(item.ms, ASKED_DELAY_MAX_MS);
  }

  /** The connection has brought something: attempts to make it again are counted anew. */
  worked(): void {
    this.#resumptions = 0;
  }

  /** Why it cannot be made again, whatever the server offers. */
  get whyOver(): string | undefined {
    return this.#api.isClosed ? CLOSED : undefined;
  }

  /** Connects again after a break, by a call that makes nothing. Throws a FeedBreak where it does not succeed. */
  async again(thrown: unknown, streamCall: () => StreamCall): Promise<void> {
    const problem = failureOf(thrown).detail;
    this.#body.destroy();
    for (;;) {
      if (++this.#resumptions > RESUMPTIONS_MAX)
        throw new FeedBreak(problem, `it did not go on in ${RESUMPTIONS_MAX} attempts`, { cause: thrown });
      try {
        await this.#api.wait(this.#delayMs(), this.#ending.signal);
        this.#body = quiet((await send(this.#api, streamCall(), this.#ending.signal)).body);
        this.#chunks = this.#body[Symbol.asyncIterator]();
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

  /** What an iteration that ended with an error throws: the caller's reason, the error, or nothing after a close. */
  endOf(thrown: unknown): { readonly error: unknown } | undefined {
    if (this.#signal?.aborted) return { error: this.#signal.reason };
    return this.isClosed ? undefined : { error: thrown };
  }

  #delayMs(): number {
    const doubled = this.#askedDelayMs * 2 ** (this.#resumptions - 1);
    return Math.min(doubled, Math.max(this.#askedDelayMs, LONGEST_DELAY_MS)) + Math.random() * FIRST_DELAY_MS;
  }
}

async function send(api: Api, { call, lastId }: StreamCall, signal: AbortSignal): Promise<OpenAnswer> {
  const headers = {
    accept: 'text/event-stream',
    'cache-control': 'no-store',
    ...call.headers,
    ...(lastId === undefined || lastId === '' ? {} : { 'last-event-id': lastId }),
  };
  const head = await api.open({ ...call, headers, options: { ...call.options, signal } });
  const type = String(head.headers['content-type'] ?? '');
  if (/^text\/event-stream\b/i.test(type)) return head;
  quiet(head.body).destroy();
  throw new InvalidAnswerError(api.factsOf(call), head, 'is no stream of events');
}

/** What breaks a body off is told to its reader; without one it would end the process. */
function quiet(body: Readable): Readable {
  return body.on('error', () => {});
}
