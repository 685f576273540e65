import { cut } from '../../../base/text.ts';
import { DeadlineError, NoResponseError } from '../../../http/errors.ts';
import { failureOf } from '../../../http/failure.ts';
import { isTransient } from '../../../http/retry.ts';
import type { ResponseBody } from '../../../http/transport.ts';
import { allowListeners } from '../../../platform/node.ts';
import { clearTimer, monotonicNowMs, setTimer } from '../../../platform/timers.ts';
import type { Api } from '../../api.ts';
import { type Call, type PreparedCall, pathOf, queryText } from '../../endpoint.ts';
import { ApiError, InvalidResponseError } from '../../errors.ts';
import { EventStream, type EventStreamItem, EventTooLongError, type ServerSentEvent } from '../../event-stream.ts';
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

/** For the request for the run's status, and the headers of a connection that may have no new events. */
const SHORT = { timeoutMs: 5_000 };
/** Maximum time without an event after the run has ended. */
const TAIL_SILENCE_MS = 2_000;

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
 * events. The source gives up after five failed reconnects without an event. Chunks are read on demand.
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
  #lastHasId = true;
  /** Event id after which the connection resumes. The id is empty after the connection's first new event. */
  #continuedId = '';
  /** The stream's first event, to notice a server that ignores the last event's id and starts over. */
  #firstKey: string | undefined;
  #startsOver = false;
  #runError: RunError | undefined;
  /** Whether the last event of the run has arrived, so that a break ends the stream. */
  #hasEnded = false;
  /** The run's final or unknown status, if the stream ends at a connection without new events. */
  #tail: string | undefined;
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
    const lastId = this.#lastId;
    const parser = new EventStream(lastId);
    this.#continuedId = lastId;
    this.#startsOver = false;
    const isLast = this.#tail !== undefined;
    const isEnd = (): boolean => isLast && this.#lastId === lastId && !this.#api.isClosed;
    let quietSinceMs = monotonicNowMs();
    const chunks = (this.#body as ResponseBody)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const chunk = await this.#next(chunks, quietSinceMs);
        if (chunk === undefined) {
          if (parser.isWithinEvent) throw new NoResponseError('the connection was closed within an event');
          return isEnd() || (await this.#isComplete()) ? undefined : new NoResponseError('the connection was closed');
        }
        for (const item of parser.feed(chunk)) {
          const event = this.#eventOf(item);
          if (event !== undefined) yield event;
          if (item.kind === 'event') quietSinceMs = monotonicNowMs();
        }
      }
    } catch (thrown) {
      if (this.#ending.signal.aborted) throw thrown;
      // Do not reconnect, because the server would send the same oversized event again.
      if (thrown instanceof EventTooLongError)
        throw this.#error(thrown.message, 'the client stopped reading the stream', thrown);
      return isEnd() ? undefined : thrown;
    }
  }

  /**
   * Returns whether the stream is complete when a connection was closed without an error, which a proxy may also do. If
   * the run is not active, or if its status is unknown, reconnects request the missing events until there are none.
   */
  async #isComplete(): Promise<boolean> {
    if (this.#hasEnded) return true;
    // A server would repeat an event without an id.
    if (!this.#canResume || !this.#lastHasId) return this.lastEvent !== undefined;
    if (!this.#isOver) this.#tail = String(await this.#status());
    if (this.#tail === 'pending' || this.#tail === 'running') this.#tail = undefined;
    // While the run is active, at least three attempts remain. The delay still grows.
    this.#reconnects = this.#tail === undefined ? Math.min(this.#reconnects, RECONNECTS_MAX - 3) : 0;
    return false;
  }

  async #status(): Promise<unknown> {
    const path = this.place.threadId && this.#runPath;
    try {
      return path && (await this.#api.send<{ status?: unknown } | null>(this.#get(path, SHORT))).data?.status;
    } catch (thrown) {
      if (this.#api.isClosed || this.#ending.signal.aborted) throw thrown;
      return undefined;
    }
  }

  get #isOver(): boolean {
    return ['success', 'error', 'timeout', 'interrupted'].includes(this.#tail ?? '');
  }

  /** Converts an event. Returns undefined for other items, and for repeated events. */
  #eventOf(item: EventStreamItem): SentEvent<Values> | undefined {
    if (item.kind === 'retry') this.#requestedDelayMs = Math.min(item.ms, REQUESTED_DELAY_MAX_MS);
    if (item.kind === 'comment') this.#sawHeartbeat = true;
    if (item.kind !== 'event') return undefined;
    const { id, data, hasOwnId, name } = item.event;
    if (this.#isRepeated(item.event)) return undefined;
    // With such an event, a server may report that it has no events after the last one.
    const isOfServer = this.#tail === 'success' || (!hasOwnId && !/^(?:error|timeout)$/.test(this.#tail ?? 'error'));
    if (this.#isOfRun && name === 'error' && isOfServer) throw new NoResponseError('the server does not continue');
    this.#reconnects = 0;
    if (!this.#isOver) this.#tail = undefined;
    this.#lastHasId = hasOwnId;
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

  /** Returns whether a connection repeats an event, because it includes the last event or starts over. */
  #isRepeated({ id, data, hasOwnId }: ServerSentEvent): boolean {
    const key = `${hasOwnId ? id : ''} ${data}`;
    const lastId = this.#continuedId;
    this.#firstKey ??= key;
    if (lastId === '') return false;
    const isLast = hasOwnId && id === lastId;
    if (this.lastEvent !== undefined && !isLast) {
      // Event ids that are numbers, or pairs such as `1700000000000-1`, increase within a run.
      const isOrdered = this.#isOfRun && hasOwnId && /^\d+(?:-\d+)? \d+(?:-\d+)?$/.test(`${id} ${lastId}`);
      const isBefore = isOrdered ? id.localeCompare(lastId, 'en', { numeric: true }) < 0 : this.#startsOver;
      this.#startsOver = isBefore || key === this.#firstKey;
    }
    if (isLast || !this.#startsOver) this.#continuedId = '';
    return isLast || this.#startsOver;
  }

  async #next(chunks: AsyncIterator<Uint8Array>, quietSinceMs: number): Promise<Uint8Array | undefined> {
    const heartbeatMs = this.#sawHeartbeat ? HEARTBEAT_SILENCE_MS : Infinity;
    const tailMs = this.#isOver ? Math.max(0, quietSinceMs + TAIL_SILENCE_MS - monotonicNowMs()) : Infinity;
    const silenceMs = Math.min(this.#idleTimeoutMs, heartbeatMs, tailMs);
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

  /** Returns false if the server does not send more events, and the run is not known to be active. */
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
        await this.#connect(this.#get(path, this.#tail === undefined ? undefined : SHORT), lastId);
        return true;
      } catch (refused) {
        if (this.#ending.signal.aborted) throw refused;
        if (this.#api.isClosed) throw this.#error(problem, CLOSED, thrown);
        if (this.#tail !== undefined) return false;
        const isAnswer = refused instanceof ApiError || refused instanceof InvalidResponseError;
        if (!isAnswer || (refused instanceof ApiError && isTransient(refused.status))) continue;
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

  #get(path: string, limit?: typeof SHORT): Call {
    return { name: this.#call.name, method: 'GET', path, options: { ...this.#call.options, ...limit } };
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
