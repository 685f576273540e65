import { cut } from '../../../base/text.ts';
import { DeadlineError, NoResponseError } from '../../../http/errors.ts';
import { failureOf } from '../../../http/failure.ts';
import { isTransient } from '../../../http/retry.ts';
import type { ResponseBody } from '../../../http/transport.ts';
import { allowListeners } from '../../../platform/node.ts';
import { clearTimer, setTimer } from '../../../platform/timers.ts';
import type { Api } from '../../api.ts';
import { type Call, type PreparedCall, pathOf, queryText } from '../../endpoint.ts';
import { ApiError, InvalidResponseError } from '../../errors.ts';
import { EventStream, type EventStreamItem, EventTooLongError } from '../../event-stream.ts';
import { type LastEvent, RunFailedError, type RunPlace, StreamError } from '../errors.ts';
import type { RunSettings } from '../run-request.ts';
import { type AgentEvent, agentEventOf, type RunError } from './agent-event.ts';
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

/** An event, and its size in characters. */
export interface SentEvent<Values> {
  readonly event: AgentEvent<Values>;
  readonly characters: number;
}

interface SourceOptions {
  readonly lastEventId: string | undefined;
  /** Maximum time without data before a connection counts as broken, in milliseconds. */
  readonly idleTimeoutMs: number;
  readonly trace: StreamTrace | undefined;
}

/**
 * Closes the source of each garbage-collected stream. This is not a static member, because terser may move the
 * initializer out of the class, where `#release` is a syntax error.
 */
const unreachable = new FinalizationRegistry<() => void>((release) => release());

/**
 * Reads an event stream over one or more connections. If a connection ends before the run, the next request names the
 * last event. The request is sent to the `Location` of the first response, or to the run's path if the server stores the
 * events. The source gives up after five consecutive reconnects without an event. Chunks are read on demand.
 */
export class EventSource<Values> {
  readonly #api: Api;
  readonly #call: PreparedCall;
  readonly #idleTimeoutMs: number;
  readonly #trace: StreamTrace | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#ending.abort(this.#signal?.reason);
  readonly #ending = new AbortController();
  /** Whether the stream belongs to one run and throws the run's error. */
  readonly #isOfRun: boolean;
  readonly #isStored: boolean;
  /** Ids of the stream's run and thread. The ids may arrive only after the stream opens. */
  readonly place: { -readonly [Key in keyof RunPlace]: RunPlace[Key] };
  #body: ResponseBody | undefined;
  #isClosed = false;
  #sawHeartbeat = false;
  #reconnects = 0;
  #requestedDelayMs = FIRST_DELAY_MS;
  /** Path and query from which the server says that the stream can resume. */
  #location: string | undefined;
  #lastId: string;
  /** Event id after which the connection resumes. The id is empty after the connection's first event. */
  #continuedId = '';
  #runError: RunError | undefined;
  /** Whether the last event of the run has arrived, so that a break ends the stream. */
  #hasEnded = false;
  /** Whether the run has ended or its status is unknown, so that the stream ends with the stored events. */
  #isOver = false;
  lastEvent: LastEvent | undefined;

  /** Opens a stream. Resolves when the response headers arrive. */
  static async open<Values>(api: Api, call: PreparedCall, options: SourceOptions): Promise<EventSource<Values>> {
    const source = new EventSource<Values>(api, call, options);
    try {
      const headers = await source.#connect(source.#call, options.lastEventId);
      if (source.#isOfRun) Object.assign(source.place, placeOf(headers['content-location'], source.place));
      source.#location = resumePath(headers.location, api);
      return source;
    } catch (thrown) {
      options.trace?.fail(thrown);
      source.close();
      throw thrown;
    }
  }

  private constructor(api: Api, call: PreparedCall, { lastEventId, idleTimeoutMs, trace }: SourceOptions) {
    const { method, ids, body, options } = call;
    this.#api = api;
    this.#call = { ...call, options: { ...options, signal: this.#ending.signal } };
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#trace = trace;
    this.#isOfRun = method === 'POST' || ids.run_id !== undefined;
    this.#lastId = lastEventId ?? '';
    this.#isStored = method === 'GET' || (body as RunSettings | undefined)?.stream_resumable === true;
    this.place = { runId: ids.run_id, threadId: ids.thread_id };
    this.#signal = options?.signal;
    // Many streams may share this signal, and Node warns about more than ten listeners.
    if (this.#signal !== undefined) allowListeners(this.#signal);
    this.#signal?.addEventListener('abort', this.#onAbort);
    if (this.#signal?.aborted) this.#onAbort();
  }

  attach(stream: object): void {
    this.#trace?.place(this.place);
    this.#trace?.watch(stream);
    unreachable.register(stream, () => this.#release());
  }

  close(): void {
    if (this.#isClosed) return;
    this.#release();
    this.#trace?.cancel();
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
  async *events(): AsyncGenerator<SentEvent<Values>, void, undefined> {
    try {
      let problem = yield* this.#read();
      while (problem !== undefined && !this.#hasEnded && (await this.#reconnect(problem)))
        problem = yield* this.#read();
      if (this.#runError !== undefined)
        throw new RunFailedError(this.place, this.#runError, (text) => this.#api.masked(text, this.#call));
      this.#trace?.end();
    } catch (thrown) {
      if (this.#isClosed && !this.#signal?.aborted) return;
      const error = this.#signal?.aborted ? this.#signal.reason : thrown;
      this.#trace?.fail(error);
      throw error;
    } finally {
      this.close();
    }
  }

  /**
   * Reads one connection until it ends. Returns undefined if the stream is complete, or the error that broke the
   * connection.
   */
  async *#read(): AsyncGenerator<SentEvent<Values>, unknown, undefined> {
    const parser = new EventStream(this.#lastId);
    this.#continuedId = this.#lastId;
    const { lastEvent } = this;
    const chunks = (this.#body as ResponseBody)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const chunk = await this.#next(chunks);
        if (chunk === undefined) {
          if (parser.isWithinEvent) return new NoResponseError('the connection was closed within an event');
          const isComplete = await this.#isComplete(this.lastEvent !== lastEvent);
          return isComplete ? undefined : new NoResponseError('the connection was closed');
        }
        for (const item of parser.feed(chunk)) {
          const event = this.#eventOf(item);
          if (event !== undefined) yield event;
        }
      }
    } catch (thrown) {
      if (this.#ending.signal.aborted) throw thrown;
      // Do not reconnect, because the server would send the same oversized event again.
      if (thrown instanceof EventTooLongError)
        throw this.#error(thrown.message, 'the client stopped reading the stream', thrown);
      return thrown;
    }
  }

  /**
   * Returns whether the stream is complete when a connection was closed without an error, which a proxy may also do. If
   * the run has ended, reconnects request the missing events until there are none. A thread's stream is never complete.
   */
  async #isComplete(hasEvents: boolean): Promise<boolean> {
    if (this.#hasEnded || (this.#isOver && !hasEvents)) return true;
    if (!this.#canResume) return this.lastEvent !== undefined;
    if (this.#isOver || !this.#isOfRun) return false;
    const path = this.place.threadId && this.#runPath;
    try {
      const run = path && (await this.#api.send<{ status?: unknown }>(this.#get(path))).data;
      if (run && (run.status === 'pending' || run.status === 'running')) return false;
    } catch (thrown) {
      // A deleted run has ended. After a temporary failure, the stream reconnects.
      return isFinal(thrown);
    }
    this.#isOver = true;
    this.#reconnects = 0;
    return false;
  }

  /** Converts an event. Returns undefined for other items, and for the event after which the connection resumes. */
  #eventOf(item: EventStreamItem): SentEvent<Values> | undefined {
    if (item.kind === 'retry') this.#requestedDelayMs = Math.min(item.ms, REQUESTED_DELAY_MAX_MS);
    if (item.kind === 'comment') this.#sawHeartbeat = true;
    if (item.kind !== 'event') return undefined;
    const { id, data, hasOwnId } = item.event;
    const isRepeated = this.#continuedId !== '' && hasOwnId && id === this.#continuedId;
    this.#continuedId = '';
    if (isRepeated) return undefined;
    // The limit also applies to a server that repeats the events of an ended run.
    if (!this.#isOver) this.#reconnects = 0;
    this.#lastId = id;
    const event = agentEventOf<Values>(item.event);
    this.lastEvent = { name: event.name, id: event.id };
    if (this.#isOfRun) {
      if (event.event === 'metadata' && typeof event.data.run_id === 'string') this.place.runId ??= event.data.run_id;
      if (event.event === 'error') this.#runError = event.data;
      if (event.event === 'error' || event.event === 'end') this.#hasEnded = true;
    }
    const isState = event.event === 'values' && event.namespace.length === 0;
    const received: ReceivedEvent = { name: event.name, data: event.data, state: isState ? () => data : undefined };
    this.#trace?.chunk(received);
    return { event, characters: data.length };
  }

  async #next(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
    const silenceMs = this.#sawHeartbeat ? Math.min(this.#idleTimeoutMs, HEARTBEAT_SILENCE_MS) : this.#idleTimeoutMs;
    const end = (): void => this.#body?.destroy(new DeadlineError(`no data arrived for ${silenceMs} ms`));
    const timer = setTimer(end, silenceMs);
    try {
      const read = (): Promise<IteratorResult<Uint8Array>> => chunks.next();
      const step = await ((this.#trace?.step(read, undefined, []) as ReturnType<typeof read> | undefined) ?? read());
      return step.done === true ? undefined : step.value;
    } finally {
      clearTimer(timer);
    }
  }

  /** Returns false if the run has ended and the server does not send more events. */
  async #reconnect(thrown: unknown): Promise<boolean> {
    const problem = failureOf(thrown).detail;
    this.#body?.destroy();
    if (this.#api.isClosed) throw this.#error(problem, CLOSED, thrown);
    const path = this.#resumePath;
    const reason = path === undefined ? 'the server does not store the events of the run' : 'the last event has no id';
    if (path === undefined || !this.#canResume)
      throw this.#error(problem, `${reason}, so the stream cannot continue`, thrown);
    // If the connection broke before the first event of a new run, request all events.
    const lastId = this.#lastId === '' && this.#call.method === 'POST' ? '-1' : this.#lastId;
    for (;;) {
      if (++this.#reconnects > RECONNECTS_MAX)
        throw this.#error(problem, `${RECONNECTS_MAX} attempts to reconnect failed`, thrown);
      try {
        await this.#api.wait(this.#delayMs(), this.#ending.signal);
        await this.#connect(this.#get(path), lastId);
        return true;
      } catch (refused) {
        if (this.#ending.signal.aborted) throw refused;
        if (this.#api.isClosed) throw this.#error(problem, CLOSED, thrown);
        if (!isFinal(refused)) continue;
        if (this.#isOver) return false;
        throw this.#error(problem, `the stream cannot continue: ${refused.message}`, refused);
      }
    }
  }

  get #canResume(): boolean {
    return this.#resumePath !== undefined && (this.lastEvent === undefined || this.#lastId !== '');
  }

  get #resumePath(): string | undefined {
    const { method, path, query } = this.#call;
    if (this.#location !== undefined || !this.#isStored) return this.#location;
    return method === 'GET' ? path + queryText(query) : this.#runPath && `${this.#runPath}/stream`;
  }

  get #runPath(): string | undefined {
    const { runId, threadId } = this.place;
    const thread = threadId === undefined ? '' : `/threads/${pathOf(threadId)}`;
    return runId && `${thread}/runs/${pathOf(runId)}`;
  }

  #get(path: string): Call {
    return { name: this.#call.name, method: 'GET', path, options: this.#call.options };
  }

  async #connect(call: Call, lastEventId: string | undefined) {
    const headers = {
      accept: 'text/event-stream',
      'cache-control': 'no-store',
      ...call.headers,
      ...(lastEventId && { 'last-event-id': lastEventId }),
    };
    const head = await this.#api.open({ ...call, headers });
    this.#body = head.body;
    if (/^text\/event-stream\b/i.test(String(head.headers['content-type'] ?? ''))) return head.headers;
    this.#body.destroy();
    throw this.#api.invalidResponse(call, head, 'is not a stream of events');
  }

  #delayMs(): number {
    if (this.#isOver && this.#reconnects === 1) return 0;
    const doubledMs = this.#requestedDelayMs * 2 ** (this.#reconnects - 1);
    return Math.min(doubledMs, Math.max(this.#requestedDelayMs, LONGEST_DELAY_MS)) + Math.random() * FIRST_DELAY_MS;
  }

  #error(problem: string, outlook: string, cause: unknown): StreamError {
    const { name, id } = this.lastEvent ?? {};
    const shown = (text: string): string => cut(this.#api.masked(text, this.#call), SHOWN_MAX);
    const lastEvent = name === undefined ? undefined : { name: shown(name), id: id && shown(id) };
    return new StreamError(this.#api.factsOf(this.#call), { ...this.place, lastEvent, problem, outlook }, { cause });
  }
}

function isFinal(thrown: unknown): thrown is ApiError | InvalidResponseError {
  return thrown instanceof InvalidResponseError || (thrown instanceof ApiError && !isTransient(thrown.status));
}

/** Reads the run id and thread id from `Content-Location: /threads/{thread_id}/runs/{run_id}`. */
export function placeOf(header: unknown, known: RunPlace): RunPlace {
  const [, threadId, runId] = /(?:\/threads\/([^/?#]+))?\/runs\/([^/?#]+)/.exec(String(header ?? '')) ?? [];
  return { runId: runId ?? known.runId, threadId: known.threadId ?? threadId };
}

/**
 * Returns the path in a `Location` header, relative to the base URL. Returns undefined for another origin, because the
 * API key must not be sent there.
 */
function resumePath(location: unknown, api: Api): string | undefined {
  const base = new URL(api.urlOf(''));
  if (typeof location !== 'string' || !URL.canParse(location, base.href)) return undefined;
  const { origin, pathname, search } = new URL(location, base);
  if (origin !== base.origin) return undefined;
  const prefix = base.pathname;
  const path = prefix !== '/' && pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname;
  return path + search;
}
