import { guard } from '../../../base/guard.ts';
import { allowListeners } from '../../../base/node.ts';
import { cut } from '../../../base/text.ts';
import { clearTimer, setTimer } from '../../../base/timers.ts';
import type { OpenAnswer, ResponseBody } from '../../../http/client.ts';
import { DeadlineError, failureOf, NoAnswerError } from '../../../http/errors.ts';
import { EventStream, EventTooLongError, type ServerSentEvent } from '../../../http/event-stream.ts';
import { isTransient } from '../../../http/retry.ts';
import type { Api } from '../../api.ts';
import type { Call } from '../../endpoint.ts';
import { ApiError, InvalidAnswerError } from '../../errors.ts';
import { type LastEvent, type RunPlace, StreamError } from '../errors.ts';

/** Maximum reconnects in a row without an event. */
const RECONNECTS_MAX = 5;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;
/** Maximum of the delay that a server requests by `retry`. */
const REQUESTED_DELAY_MAX_MS = 30_000;

/** Maximum silence of a server that sends heartbeats, which arrive every few seconds. */
const HEARTBEAT_SILENCE_MS = 60_000;

/** Maximum characters of an event's name and id in an error. */
const SHOWN_MAX = 200;

const CLOSED = 'the client is closed';

/** The request of a connection, and the id of the event after which the stream continues. */
export interface StreamRequest {
  readonly call: Call;
  readonly lastEventId: string | undefined;
}

/** Decides where a stream continues after a break, and which events are new. */
export interface ResumePolicy<Event> {
  /** Returns the request that continues the stream, or why the stream cannot continue. */
  resume(): StreamRequest | string;
  /** Called when a connection is made. Returns the last event id, which events without an id inherit. */
  connected(): string;
  /** Returns undefined if the event is not new. Throws a NoAnswerError to reconnect. */
  accept(event: ServerSentEvent): Event | undefined;
  /** Returns whether the connection works. Throws a NoAnswerError to reconnect, or an UnrecoverableError. */
  heartbeat(): boolean;
  /** Maximum silence for the next event. The stream reconnects after `silent()`. */
  readonly silenceMaxMs: number;
  silent(): void;
  /** Whether the stream is complete if the server ends the connection. */
  readonly isComplete: boolean;
  /** Whether a break is the end of the stream. */
  readonly isOver: boolean;
}

/** The stream cannot continue. */
export class UnrecoverableError extends Error {
  override readonly name: string = 'UnrecoverableError';
}

export interface SourceOptions<Event> {
  readonly request: StreamRequest;
  readonly policy: ResumePolicy<Event>;
  /** Silence after which a connection counts as broken. */
  readonly idleTimeoutMs: number;
  /** The run and thread for errors. The ids may become known later. */
  readonly place: RunPlace;
  readonly onStatus?: ((status: StreamStatus) => void) | undefined;
}

/** See `onStatus` of `ThreadEventsOptions`. */
export type StreamStatus = 'live' | 'reconnecting';

/**
 * The events of a stream over one or more connections. After a break, the source reconnects with a request of its
 * policy, at most five times in a row without an event. Nothing is read ahead, except the current chunk.
 *
 *     open → reading ──complete, close──→ closed
 *              │  ↑
 *         break│  │connected
 *              ↓  │
 *          reconnecting ──five failures, refusal──→ closed with a StreamError
 */
export class EventSource<Event> {
  readonly #api: Api;
  readonly #options: SourceOptions<Event>;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#ending.abort(this.#signal?.reason);
  /** Ends the requests and delays of the source. */
  readonly #ending = new AbortController();
  #headers: OpenAnswer['headers'] = {};
  #body: ResponseBody | undefined;
  #isClosed = false;
  #sawHeartbeat = false;
  #reconnects = 0;
  #requestedDelayMs = FIRST_DELAY_MS;
  /** The last event that was returned. */
  lastEvent: LastEvent | undefined;

  /** Sends the request and resolves when the response headers arrive. */
  static async open<Event>(api: Api, options: SourceOptions<Event>): Promise<EventSource<Event>> {
    const source = new EventSource<Event>(api, options);
    try {
      source.#headers = await source.#connect(options.request);
      return source;
    } catch (thrown) {
      source.close();
      throw thrown;
    }
  }

  private constructor(api: Api, options: SourceOptions<Event>) {
    this.#api = api;
    this.#options = options;
    this.#signal = options.request.call.options?.signal;
    // Node warns about the eleventh listener, but a signal may belong to many streams.
    if (this.#signal !== undefined) allowListeners(this.#signal);
    this.#signal?.addEventListener('abort', this.#onAbort);
    if (this.#signal?.aborted) this.#onAbort();
  }

  /** Headers of the first response. */
  get headers(): OpenAnswer['headers'] {
    return this.#headers;
  }

  /** Ends the connection and the iteration. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#ending.abort();
    this.#body?.destroy();
  }

  /** Can be iterated once. Throws a StreamError, or the reason of the caller's signal. */
  async *events(): AsyncGenerator<Event, void, undefined> {
    try {
      for (;;) {
        const problem = yield* this.#read();
        if (problem === undefined || this.#options.policy.isOver) return;
        await this.#reconnect(problem);
      }
    } catch (thrown) {
      if (this.#signal?.aborted) throw this.#signal.reason;
      if (!this.#isClosed) throw thrown;
    } finally {
      this.close();
    }
  }

  /** Returns undefined if the stream is complete, or the error that broke the connection. */
  async *#read(): AsyncGenerator<Event, unknown, undefined> {
    const { policy } = this.#options;
    const parser = new EventStream(policy.connected());
    const chunks = (this.#body as ResponseBody)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const chunk = await this.#next(chunks);
        if (chunk === undefined) {
          if (parser.isWithinEvent) return new NoAnswerError('it was closed within an event');
          return policy.isComplete ? undefined : new NoAnswerError('it was closed');
        }
        for (const item of parser.feed(chunk)) {
          if (item.kind === 'retry') this.#requestedDelayMs = Math.min(item.ms, REQUESTED_DELAY_MAX_MS);
          if (item.kind === 'comment') {
            this.#sawHeartbeat = true;
            if (policy.heartbeat()) this.#reconnects = 0;
            if (item.text.trim() === 'live') this.#report('live');
          }
          const event = item.kind === 'event' ? policy.accept(item.event) : undefined;
          if (item.kind !== 'event' || event === undefined) continue;
          this.#reconnects = 0;
          const { name, id } = item.event;
          this.lastEvent = { name: nameOf(event) ?? name, id: id === '' ? undefined : id };
          yield event;
        }
      }
    } catch (thrown) {
      if (this.#ending.signal.aborted) throw thrown;
      // The event would be too long again.
      if (thrown instanceof EventTooLongError || thrown instanceof UnrecoverableError)
        throw this.#error(thrown.message, 'it was ended', thrown);
      return thrown;
    }
  }

  async #next(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
    const { idleTimeoutMs, policy } = this.#options;
    const idleMs = this.#sawHeartbeat ? Math.min(idleTimeoutMs, HEARTBEAT_SILENCE_MS) : idleTimeoutMs;
    const silenceMs = Math.min(idleMs, policy.silenceMaxMs);
    const silence = new DeadlineError(`nothing came for ${silenceMs} ms`);
    const timer = setTimer(() => this.#body?.destroy(silence), silenceMs);
    try {
      const step = await chunks.next();
      return step.done === true ? undefined : step.value;
    } catch (thrown) {
      if (thrown === silence) policy.silent();
      throw thrown;
    } finally {
      clearTimer(timer);
    }
  }

  async #reconnect(thrown: unknown): Promise<void> {
    const problem = failureOf(thrown).detail;
    this.#body?.destroy();
    const request = this.#api.isClosed ? CLOSED : this.#options.policy.resume();
    this.#report('reconnecting');
    if (typeof request === 'string') throw this.#error(problem, request, thrown);
    for (;;) {
      if (++this.#reconnects > RECONNECTS_MAX)
        throw this.#error(problem, `it did not go on in ${RECONNECTS_MAX} attempts`, thrown);
      try {
        await this.#api.wait(this.#delayMs(), this.#ending.signal);
        await this.#connect(request);
        return;
      } catch (refused) {
        if (this.#ending.signal.aborted) throw refused;
        if (this.#api.isClosed) throw this.#error(problem, CLOSED, thrown);
        const isFinal = refused instanceof ApiError && !isTransient(refused.status);
        if (isFinal || refused instanceof InvalidAnswerError)
          throw this.#error(problem, `it does not go on: ${refused.message}`, refused);
      }
    }
  }

  async #connect({ call, lastEventId }: StreamRequest): Promise<OpenAnswer['headers']> {
    const headers = {
      accept: 'text/event-stream',
      'cache-control': 'no-store',
      ...call.headers,
      ...(lastEventId && { 'last-event-id': lastEventId }),
    };
    const options = { ...call.options, signal: this.#ending.signal };
    const head = await this.#api.open({ ...call, headers, options });
    this.#body = head.body;
    if (/^text\/event-stream\b/i.test(String(head.headers['content-type'] ?? ''))) return head.headers;
    this.#body.destroy();
    throw this.#api.invalidAnswer(call, head, 'is not a stream of events');
  }

  #report(status: StreamStatus): void {
    guard('onStatus', () => this.#options.onStatus?.(status));
  }

  #delayMs(): number {
    const doubledMs = this.#requestedDelayMs * 2 ** (this.#reconnects - 1);
    return Math.min(doubledMs, Math.max(this.#requestedDelayMs, LONGEST_DELAY_MS)) + Math.random() * FIRST_DELAY_MS;
  }

  #error(problem: string, outlook: string, cause: unknown): StreamError {
    const { request, place } = this.#options;
    const masked = (text: string): string => cut(this.#api.masked(text, request.call), SHOWN_MAX);
    const { lastEvent } = this;
    const shown = lastEvent && { name: masked(lastEvent.name), id: lastEvent.id && masked(lastEvent.id) };
    return new StreamError(
      this.#api.factsOf(request.call),
      { ...place, lastEvent: shown, problem, outlook },
      { cause },
    );
  }
}

function nameOf(event: unknown): string | undefined {
  const { name } = event as { readonly name?: unknown };
  return typeof name === 'string' ? name : undefined;
}
