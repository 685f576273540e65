import { guard } from '../../../base/guard.ts';
import { cut } from '../../../base/text.ts';
import { DeadlineError, NoAnswerError } from '../../../http/errors.ts';
import { failureOf } from '../../../http/failure.ts';
import { isTransient } from '../../../http/retry.ts';
import type { OpenAnswer, ResponseBody } from '../../../http/transport.ts';
import { allowListeners } from '../../../platform/node.ts';
import { clearTimer, setTimer } from '../../../platform/timers.ts';
import type { Api } from '../../api.ts';
import type { Call } from '../../endpoint.ts';
import { ApiError, InvalidAnswerError } from '../../errors.ts';
import { EventStream, type EventStreamItem, EventTooLongError, type ServerSentEvent } from '../../event-stream.ts';
import { type LastEvent, RunFailedError, type RunPlace, StreamError } from '../errors.ts';
import type { RunError } from './agent-event.ts';
import type { ReceivedEvent, StreamTrace } from './stream-trace.ts';

/** Maximum number of consecutive reconnects without an event. */
const RECONNECTS_MAX = 5;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;
/** Maximum reconnect delay that a server can request with a `retry` field, in milliseconds. */
const REQUESTED_DELAY_MAX_MS = 30_000;

/** Maximum time without data on a connection whose server sends heartbeats. */
const HEARTBEAT_SILENCE_MS = 60_000;

/** Maximum length of an event's name or id in an error. */
const SHOWN_MAX = 200;

const CLOSED = 'the client is closed';

/** The request for a connection, and the id of the event after which to resume. */
export interface StreamRequest {
  readonly call: Call;
  readonly lastEventId: string | undefined;
}

/** Decides where a stream resumes after a break, and which events are new. */
export interface ResumePolicy<Event> {
  /** Ids of the stream's run and thread. The ids may arrive only after the stream opens. */
  readonly place: RunPlace;
  readonly first: StreamRequest;
  /** Called with the headers of the first response. */
  opened?(headers: OpenAnswer['headers'], api: Api): void;
  /** Called when a connection opens. Returns the last event id, which is used for events without an id. */
  connected(): string;
  /** Converts a received event. Returns undefined for a repeated event. Throws a NoAnswerError to reconnect. */
  accept(event: ServerSentEvent): Event | undefined;
  /** Returns the event's name for use in errors. */
  nameOf(event: Event): string;
  /** Returns the event to record in the trace. */
  recorded(event: Event, sent: ServerSentEvent): ReceivedEvent;
  /**
   * Called for each heartbeat. Returns whether the connection counts as working. Throws a NoAnswerError to reconnect,
   * or an UnrecoverableError to end the stream.
   */
  heartbeat?(): boolean;
  /**
   * Maximum time to wait for the next event, in milliseconds. After this time, the source calls `silent()` and
   * reconnects.
   */
  readonly silenceMaxMs?: number;
  silent?(): void;
  /** Returns the request that resumes the stream, or the reason why the stream cannot resume. */
  resume(): StreamRequest | string;
  /** Whether the stream is complete when the server ends the connection. */
  readonly isComplete: boolean;
  /** When the stream ends: not yet, at the next break of the connection, or now. */
  readonly end: 'open' | 'at a break' | 'now';
  /** Error of the run, which the stream throws at its end. */
  readonly runError: RunError | undefined;
}

/** Ends the stream without a reconnect. */
export class UnrecoverableError extends Error {
  override readonly name: string = 'UnrecoverableError';
}

export interface SourceOptions<Event> {
  readonly policy: ResumePolicy<Event>;
  /** Maximum time without data before a connection counts as broken, in milliseconds. */
  readonly idleTimeoutMs: number;
  readonly trace?: StreamTrace | undefined;
  readonly onStatus?: ((status: StreamStatus) => void) | undefined;
}

/** See `onStatus` of `ThreadEventsOptions`. */
export type StreamStatus = 'live' | 'reconnecting';

/**
 * Closes the source of each garbage-collected stream. This is not a static member, because terser may move the
 * initializer out of the class, where `#release` is a syntax error.
 */
const unreachable = new FinalizationRegistry<() => void>((release) => release());

/**
 * Reads an event stream over one or more connections. After a break, the policy returns the request for the next
 * connection. The source gives up after five consecutive reconnects without an event. Chunks are read on demand.
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
  readonly #ending = new AbortController();
  #body: ResponseBody | undefined;
  #isClosed = false;
  #sawHeartbeat = false;
  #reconnects = 0;
  #requestedDelayMs = FIRST_DELAY_MS;
  lastEvent: LastEvent | undefined;

  /** Opens a stream. Resolves when the response headers arrive. */
  static async open<Event>(api: Api, options: SourceOptions<Event>): Promise<EventSource<Event>> {
    const source = new EventSource<Event>(api, options);
    try {
      const { policy } = options;
      const headers = await source.#connect(policy.first);
      policy.opened?.(headers, api);
      return source;
    } catch (thrown) {
      options.trace?.fail(thrown);
      source.close();
      throw thrown;
    }
  }

  private constructor(api: Api, options: SourceOptions<Event>) {
    this.#api = api;
    this.#options = options;
    this.#signal = options.policy.first.call.options?.signal;
    // Many streams may share this signal, and Node warns about more than ten listeners.
    if (this.#signal !== undefined) allowListeners(this.#signal);
    this.#signal?.addEventListener('abort', this.#onAbort);
    if (this.#signal?.aborted) this.#onAbort();
  }

  attach(stream: object): void {
    this.#options.trace?.watch(stream, this.#options.policy.place);
    unreachable.register(stream, () => this.#release());
  }

  close(): void {
    if (this.#isClosed) return;
    this.#release();
    this.#options.trace?.cancel();
  }

  #release(): void {
    this.#isClosed = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#ending.abort();
    this.#body?.destroy();
  }

  /**
   * Iterates over the events. Call this method only once. Throws a RunFailedError, a StreamError, or the reason of the
   * caller's abort signal.
   */
  async *events(): AsyncGenerator<Event, void, undefined> {
    const { policy, trace } = this.#options;
    let failure: RunFailedError | undefined;
    try {
      for (;;) {
        const problem = yield* this.#read();
        if (problem === undefined || policy.end !== 'open') break;
        await this.#reconnect(problem);
      }
      failure = this.#settle();
    } catch (thrown) {
      if (this.#isClosed && !this.#signal?.aborted) return;
      const error = this.#signal?.aborted ? this.#signal.reason : thrown;
      trace?.fail(error);
      throw error;
    } finally {
      this.close();
    }
    if (failure !== undefined) throw failure;
  }

  /** Ends the recorded run. Returns an error if the agent's run failed. */
  #settle(): RunFailedError | undefined {
    const { policy, trace } = this.#options;
    if (policy.runError === undefined) trace?.end();
    if (policy.runError === undefined) return undefined;
    const failure = new RunFailedError(policy.place, policy.runError, (text) => this.#masked(text));
    trace?.fail(failure);
    return failure;
  }

  /**
   * Reads one connection until it ends. Returns undefined if the stream is complete, or the error that broke the
   * connection.
   */
  async *#read(): AsyncGenerator<Event, unknown, undefined> {
    const { policy, trace } = this.#options;
    const parser = new EventStream(policy.connected());
    const chunks = (this.#body as ResponseBody)[Symbol.asyncIterator]();
    trace?.touch();
    try {
      for (;;) {
        const chunk = await this.#next(chunks);
        if (chunk === undefined) {
          if (parser.isWithinEvent) return new NoAnswerError('the connection was closed within an event');
          return policy.isComplete ? undefined : new NoAnswerError('the connection was closed');
        }
        for (const item of parser.feed(chunk)) {
          const event = this.#eventOf(item);
          if (event === undefined) continue;
          if (policy.end === 'now') {
            // Close now, because the application may stop reading after the last event.
            this.#settle();
            this.close();
          }
          yield event;
          if (policy.end === 'now') return undefined;
          trace?.touch();
        }
      }
    } catch (thrown) {
      if (this.#ending.signal.aborted) throw thrown;
      // Do not reconnect, because the server would send the same oversized event again.
      if (thrown instanceof EventTooLongError || thrown instanceof UnrecoverableError)
        throw this.#error(thrown.message, 'the client stopped reading the stream', thrown);
      return thrown;
    }
  }

  #eventOf(item: EventStreamItem): Event | undefined {
    const { policy, trace } = this.#options;
    if (item.kind === 'retry') this.#requestedDelayMs = Math.min(item.ms, REQUESTED_DELAY_MAX_MS);
    if (item.kind === 'comment') {
      this.#sawHeartbeat = true;
      if (policy.heartbeat?.()) this.#reconnects = 0;
      if (item.text.trim() === 'live') this.#report('live');
    }
    if (item.kind !== 'event') return undefined;
    const event = policy.accept(item.event);
    if (event === undefined) return undefined;
    this.#reconnects = 0;
    const { id } = item.event;
    this.lastEvent = { name: policy.nameOf(event), id: id === '' ? undefined : id };
    trace?.received(policy.recorded(event, item.event));
    return event;
  }

  async #next(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
    const { idleTimeoutMs, policy } = this.#options;
    const idleMs = this.#sawHeartbeat ? Math.min(idleTimeoutMs, HEARTBEAT_SILENCE_MS) : idleTimeoutMs;
    const silenceMs = Math.min(idleMs, policy.silenceMaxMs ?? idleMs);
    const silence = new DeadlineError(`no data arrived for ${silenceMs} ms`);
    const timer = setTimer(() => this.#body?.destroy(silence), silenceMs);
    try {
      const step = await chunks.next();
      return step.done === true ? undefined : step.value;
    } catch (thrown) {
      if (thrown === silence) policy.silent?.();
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
        throw this.#error(problem, `${RECONNECTS_MAX} attempts to reconnect failed`, thrown);
      try {
        await this.#api.wait(this.#delayMs(), this.#ending.signal);
        await this.#connect(request);
        return;
      } catch (refused) {
        if (this.#ending.signal.aborted) throw refused;
        if (this.#api.isClosed) throw this.#error(problem, CLOSED, thrown);
        const isFinal = refused instanceof ApiError && !isTransient(refused.status);
        if (isFinal || refused instanceof InvalidAnswerError)
          throw this.#error(problem, `the stream cannot continue: ${refused.message}`, refused);
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
    const { place, first } = this.#options.policy;
    const { name, id } = this.lastEvent ?? {};
    const shown = (text: string): string => cut(this.#masked(text), SHOWN_MAX);
    const lastEvent = name === undefined ? undefined : { name: shown(name), id: id && shown(id) };
    return new StreamError(this.#api.factsOf(first.call), { ...place, lastEvent, problem, outlook }, { cause });
  }

  #masked(text: string): string {
    return this.#api.masked(text, this.#options.policy.first.call);
  }
}

/**
 * Returns an iterator that ends as soon as the application leaves the loop. A generator would wait for the pending read
 * first.
 */
export function leavable<Event>(
  events: AsyncGenerator<Event, void, undefined>,
  close: () => Promise<void>,
): AsyncIterator<Event, void, undefined> {
  return {
    next: () => events.next(),
    return: async () => {
      await close();
      return events.return();
    },
  };
}
