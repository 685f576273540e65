import { guard } from '../../../base/guard.ts';
import { allowListeners } from '../../../base/node.ts';
import { cut } from '../../../base/text.ts';
import { clearTimer, setTimer } from '../../../base/timers.ts';
import type { OpenAnswer, ResponseBody } from '../../../http/client.ts';
import { DeadlineError, failureOf, NoAnswerError } from '../../../http/errors.ts';
import {
  EventStream,
  type EventStreamItem,
  EventTooLongError,
  type ServerSentEvent,
} from '../../../http/event-stream.ts';
import { isTransient } from '../../../http/retry.ts';
import type { Api } from '../../api.ts';
import type { Call } from '../../endpoint.ts';
import { ApiError, InvalidAnswerError } from '../../errors.ts';
import { type LastEvent, RunFailedError, type RunPlace, StreamError } from '../errors.ts';
import type { RunError } from './agent-event.ts';
import type { ReceivedEvent, StreamTrace } from './stream-trace.ts';

/** Maximum number of consecutive reconnects without an event. */
const RECONNECTS_MAX = 5;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;
/** Maximum delay that a server can request by `retry`. */
const REQUESTED_DELAY_MAX_MS = 30_000;

/** Maximum silence from a server that sends heartbeats every few seconds. */
const HEARTBEAT_SILENCE_MS = 60_000;

/** Maximum number of characters of an event's name or id in an error. */
const SHOWN_MAX = 200;

const CLOSED = 'the client is closed';

/** The request that opens a connection, and the id of the event to continue after. */
export interface StreamRequest {
  readonly call: Call;
  readonly lastEventId: string | undefined;
}

/** Decides where a stream continues after a break, and which events are new. */
export interface ResumePolicy<Event> {
  /** The run and thread of the stream. The ids may become known later. */
  readonly place: RunPlace;
  /** The first request. */
  readonly first: StreamRequest;
  /** Called with the headers of the first response. */
  opened?(headers: OpenAnswer['headers'], api: Api): void;
  /** Called when a connection is made. Returns the last event id, which events without an id inherit. */
  connected(): string;
  /** Converts a received event. Returns undefined if the event is not new. Throws a NoAnswerError to reconnect. */
  accept(event: ServerSentEvent): Event | undefined;
  /** Returns the name of the event for errors. */
  nameOf(event: Event): string;
  /** Returns the event in the form that is recorded. */
  recorded(event: Event, sent: ServerSentEvent): ReceivedEvent;
  /**
   * Called for each heartbeat. Returns whether the connection works. Throws a NoAnswerError to reconnect, or an
   * UnrecoverableError.
   */
  heartbeat?(): boolean;
  /** Maximum silence before the next event. After that time, `silent()` is called and the stream reconnects. */
  readonly silenceMaxMs?: number;
  silent?(): void;
  /** Returns the request that continues the stream, or the reason why the stream cannot continue. */
  resume(): StreamRequest | string;
  /** Whether the stream counts as complete when the server ends the connection. */
  readonly isComplete: boolean;
  /** Whether the stream stays open, ends at the next break, or ends at once. */
  readonly end: 'open' | 'at a break' | 'now';
  /** The error of the run. The stream throws it at its end. */
  readonly runError: RunError | undefined;
}

/** The stream cannot continue. */
export class UnrecoverableError extends Error {
  override readonly name: string = 'UnrecoverableError';
}

export interface SourceOptions<Event> {
  readonly policy: ResumePolicy<Event>;
  /** Silence after which a connection counts as broken. */
  readonly idleTimeoutMs: number;
  /** Records the stream within a run of the application. */
  readonly trace?: StreamTrace | undefined;
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
  /** Releases streams that are no longer reachable. Their traces end the recorded runs as interrupted. */
  static readonly #unreachable = new FinalizationRegistry<EventSource<unknown>>((source) => source.#release());
  readonly #api: Api;
  readonly #options: SourceOptions<Event>;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#ending.abort(this.#signal?.reason);
  /** Aborts the requests and delays of the source. */
  readonly #ending = new AbortController();
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
    // Many streams may share a signal, but Node warns about the eleventh listener.
    if (this.#signal !== undefined) allowListeners(this.#signal);
    this.#signal?.addEventListener('abort', this.#onAbort);
    if (this.#signal?.aborted) this.#onAbort();
  }

  /** Closes the source when `stream` is no longer referenced, because nobody can close it then. */
  attach(stream: object): void {
    this.#options.trace?.watch(stream, this.#options.policy.place);
    EventSource.#unreachable.register(stream, this);
  }

  /** Ends the connection and the iteration. */
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
   * Iterates over the events. Can be called once. Throws a RunFailedError, a StreamError, or the reason of the caller's
   * signal.
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

  /** Ends the recorded run. Returns the error of the agent's run, if any. */
  #settle(): RunFailedError | undefined {
    const { policy, trace } = this.#options;
    if (policy.runError === undefined) trace?.end();
    if (policy.runError === undefined) return undefined;
    const failure = new RunFailedError(policy.place, policy.runError, (text) => this.#masked(text));
    trace?.fail(failure);
    return failure;
  }

  /**
   * Reads one connection. Returns undefined if the stream is complete, otherwise the error that broke the connection.
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
          if (parser.isWithinEvent) return new NoAnswerError('it was closed within an event');
          return policy.isComplete ? undefined : new NoAnswerError('it was closed');
        }
        for (const item of parser.feed(chunk)) {
          const event = this.#eventOf(item);
          if (event === undefined) continue;
          if (policy.end === 'now') {
            // The reader may never request the last event.
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
      // After a reconnect, the event would be too long again.
      if (thrown instanceof EventTooLongError || thrown instanceof UnrecoverableError)
        throw this.#error(thrown.message, 'it was ended', thrown);
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
        throw this.#error(problem, `it did not continue in ${RECONNECTS_MAX} attempts`, thrown);
      try {
        await this.#api.wait(this.#delayMs(), this.#ending.signal);
        await this.#connect(request);
        return;
      } catch (refused) {
        if (this.#ending.signal.aborted) throw refused;
        if (this.#api.isClosed) throw this.#error(problem, CLOSED, thrown);
        const isFinal = refused instanceof ApiError && !isTransient(refused.status);
        if (isFinal || refused instanceof InvalidAnswerError)
          throw this.#error(problem, `it cannot continue: ${refused.message}`, refused);
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

/** Returns an iterator that ends at once when its reader leaves it. A generator would first wait for a pending read. */
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
