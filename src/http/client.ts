import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { clearTimer, setTimer, withoutTracing } from '../base/timers.ts';
import { createConnections, isOfUsedConnection } from './connections.ts';
import { DeadlineError, NoAnswerError } from './failure.ts';
import type { Proxies } from './proxies.ts';
import { SetupError } from './setup-error.ts';

/** Bytes of an answer that are read; the rest is not waited for. */
const ANSWER_BYTES_MAX = 64 * 1024;

type Headers = Readonly<Record<string, string>>;

export type HeadersFunction = (progress: Progress) => Promise<Headers>;

export interface Progress {
  /**
   * The option whose function is currently running. If the request times out meanwhile, its error names this option.
   */
  waitsFor: string | undefined;
}

/** Maximum time spent reading an unneeded response body, so that the connection can be reused. */
const UNNEEDED_BODY_MS = 1_000;

export interface HttpClientOptions {
  /** Paths are appended to its own path. */
  readonly endpoint: URL;
  /**
   * Headers sent with every request, and only to this endpoint, because redirects are not followed. A function is called for
   * each request and counts toward its deadline. If the function throws, the request fails with that error.
   */
  readonly headers: Headers | HeadersFunction;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Sends the requests instead of our own connection pool. Proxy settings then have no effect. */
  readonly dispatcher?: Dispatcher | undefined;
  readonly proxies?: Proxies | undefined;
  /** Requests under way keep the process alive, until the head of an answer by their deadline too: for callers that wait. */
  readonly holdsProcess?: boolean;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** Begins with a slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent one chunk after the other, with the length of all of them. */
  readonly body?: readonly (string | Uint8Array)[];
  /** Sent instead of a body, with the length that is given; for `open` only, which sends it once. */
  readonly stream?: StreamBody;
  readonly signal?: AbortSignal;
  /**
   * Whether only the status of the response is needed. The body is read for at most one second, errors while reading it are
   * ignored, and the answer has no text.
   */
  readonly needsStatusOnly?: boolean;
  /** Timeout of this request in milliseconds, if it must be shorter than the default. */
  readonly timeoutMs?: number;
}

export interface StreamBody {
  readonly stream: Readable;
  readonly bytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** At most 64 KiB of the body. */
  readonly text: string;
  /** Whether the request went without a key, and without an `authorization` in its place. */
  readonly isKeyless?: boolean;
}

/** An answer of which only the head has come. */
export interface OpenAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: HttpAnswer['headers'];
  /** To be read to its end, or destroyed. Fails when it breaks off, or with the reason of the request's signal. */
  readonly body: Readable;
}

/**
 * Sends single requests with a deadline to one endpoint. Unless `holdsProcess` they never keep the process alive. They are
 * never traced, and `undici` is loaded at the first of them. Rejects when no answer came: refused, reset, timed out or
 * aborted; any status is an answer.
 */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #basePath: string;
  #headers: HttpClientOptions['headers'];
  readonly #destroyed = new Breaker();
  #pool: Dispatcher | Promise<Dispatcher> | undefined;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#headers = options.headers;
    // Each request under way listens to it.
    this.#destroyed.setMaxListeners(0);
    this.#basePath = options.endpoint.pathname.replace(/(?<!\/)\/+$/, '');
  }

  /** What is sent with every request from now on, in the place of what was. */
  setHeaders(headers: HttpClientOptions['headers']): void {
    this.#headers = headers;
  }

  async send(request: HttpRequest): Promise<HttpAnswer> {
    const timeoutMs = Math.min(request.timeoutMs ?? Number.POSITIVE_INFINITY, this.#options.requestTimeoutMs);
    const attempt = this.#attempt(request.signal, timeoutMs);
    try {
      return await this.#within(attempt, (dispatcher) => this.#answer(dispatcher, request, attempt));
    } finally {
      attempt.end();
    }
  }

  /**
   * Sends a request once, and resolves when the head of its answer has come, which the deadline is for. Neither a limit nor a
   * deadline holds for the body: its reader has them.
   */
  async open(request: HttpRequest): Promise<OpenAnswer> {
    const attempt = this.#attempt(request.signal, request.timeoutMs ?? this.#options.requestTimeoutMs);
    try {
      const { statusCode, headers, body } = await this.#within(attempt, async (dispatcher) => {
        const own = typeof this.#headers === 'function' ? await this.#headers(attempt) : this.#headers;
        const timeouts = { headersTimeout: 0, bodyTimeout: 0 };
        return withoutTracing(() => this.#dispatch(dispatcher, own, request, attempt, timeouts));
      });
      attempt.endDeadline();
      body.once('close', () => attempt.end());
      // Destroyed before its end it fails, and nobody has to listen then; whoever reads it is told all the same.
      body.on('error', () => {});
      return { status: statusCode, headers, body };
    } catch (thrown) {
      attempt.end();
      // undici does so for what it has taken.
      request.stream?.stream.destroy();
      throw thrown;
    }
  }

  /** Breaks off what is under way. A dispatcher that was passed in is left alone. */
  async destroy(): Promise<void> {
    this.#destroyed.abort(new NoAnswerError('the client was closed'));
    const pool = await Promise.resolve(this.#pool).catch(() => undefined);
    await pool?.destroy();
  }

  /** Ends by itself after so many milliseconds, with the signal, and when the client is destroyed. */
  #attempt(signal: AbortSignal | undefined, timeoutMs: number): Attempt {
    return new Attempt(this.#destroyed, signal, timeoutMs, this.#options.holdsProcess ?? false);
  }

  async #within<Answer>(attempt: Attempt, send: (dispatcher: Dispatcher) => Promise<Answer>): Promise<Answer> {
    const found = this.#dispatcher();
    const dispatcher = found instanceof Promise ? await found : found;
    // undici would connect first.
    if (attempt.aborted) throw attempt.reason;
    return new Promise((resolve, reject) => {
      // Not every dispatcher heeds it; the deadline has to hold for all.
      attempt.once('abort', () => reject(attempt.reason));
      send(dispatcher).then(resolve, reject);
    });
  }

  async #answer(dispatcher: Dispatcher, request: HttpRequest, breaker: Attempt): Promise<HttpAnswer> {
    const source = this.#headers;
    const headers = typeof source === 'function' ? await source(breaker) : source;
    // The request may have been aborted while its headers were being obtained.
    if (breaker.aborted) throw breaker.reason;
    const dispatch = () => withoutTracing(() => this.#dispatch(dispatcher, headers, request, breaker));
    const answer = await dispatch().catch((error) => {
      // No response has arrived, and the retry uses another connection, so no delay is needed before it.
      if (breaker.aborted || !isOfUsedConnection(error)) throw error;
      return dispatch();
    });
    const { statusCode: status } = answer;
    if (request.needsStatusOnly) breaker.endDeadline();
    const text = request.needsStatusOnly ? await drained(answer.body) : await readText(answer.body);
    // The rejected key has been replaced in the meantime, so try again with the new one.
    if ((status === 401 || status === 403) && this.#headers !== source)
      return this.#answer(dispatcher, request, breaker);
    const isKeyless = headers['x-api-key'] === undefined && headers.authorization === undefined;
    return { status, headers: answer.headers, text, isKeyless };
  }

  async #dispatch(
    dispatcher: Dispatcher,
    headers: Headers,
    request: HttpRequest,
    breaker: Breaker,
    timeouts: { headersTimeout: number; bodyTimeout: number } | undefined = undefined,
  ): Promise<Dispatcher.ResponseData> {
    return dispatcher.request({
      // Options of undici's that the host has put on all objects, `query` for example, are none of ours.
      __proto__: null,
      origin: this.#options.endpoint.origin,
      path: this.#basePath + request.path,
      method: request.method,
      headers: { ...headers, ...request.headers, ...lengthOf(request) },
      body: bodyOf(request),
      ...timeouts,
      signal: breaker,
      // A dispatcher of the application may follow redirects, and would take the key along.
      maxRedirections: 0,
    } as unknown as Dispatcher.RequestOptions);
  }

  /** A promise only until there is one. */
  #dispatcher(): Dispatcher | Promise<Dispatcher> {
    return this.#options.dispatcher ?? this.#pool ?? this.#connect();
  }

  #connect(): Promise<Dispatcher> {
    const connecting = createConnections(this.#options).then(
      (pool) => {
        this.#pool = pool;
        return pool;
      },
      (error) => {
        this.#pool = undefined;
        throw error;
      },
    );
    this.#pool = connecting;
    return connecting;
  }
}

function bodyOf({ body, stream }: HttpRequest): string | Uint8Array | Readable | null {
  if (stream !== undefined) return stream.stream;
  return body === undefined || body.length <= 1 ? (body?.[0] ?? null) : Readable.from(body);
}

function lengthOf({ body, stream }: HttpRequest): Record<string, string> {
  if (stream !== undefined) return { 'content-length': String(stream.bytes) };
  if (body === undefined) return {};
  let bytes = 0;
  for (const chunk of body) bytes += Buffer.byteLength(chunk);
  return { 'content-length': String(bytes) };
}

function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const take = (): void => resolve(Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX).toString('utf8'));
    body.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < ANSWER_BYTES_MAX) return;
      take();
      // And with it the connection, which a huge answer would keep busy.
      body.destroy();
    });
    body.once('end', take);
    body.on('error', reject);
    body.once('close', () => reject(new NoAnswerError('the answer broke off')));
  });
}

async function drained(body: Dispatcher.ResponseData['body']): Promise<string> {
  const timer = setTimer(() => body.destroy(), UNNEEDED_BODY_MS).unref();
  await readText(body).catch(() => {});
  clearTimer(timer);
  return '';
}

/** Ends a request before it is answered. undici takes an emitter in the place of an AbortSignal, whose listeners cost more. */
class Breaker extends EventEmitter {
  aborted = false;
  reason: unknown;

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.emit('abort');
  }
}

/** One request under way. */
class Attempt extends Breaker implements Progress {
  waitsFor: string | undefined;
  readonly #destroyed: Breaker;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #abort = (): void => this.abort(this.#destroyed.aborted ? this.#destroyed.reason : this.#signal?.reason);

  constructor(destroyed: Breaker, signal: AbortSignal | undefined, timeoutMs: number, holdsProcess: boolean) {
    super();
    this.#destroyed = destroyed;
    this.#signal = signal;
    this.#timer = setTimer(() => this.abort(this.#timeoutError(timeoutMs)), timeoutMs);
    if (!holdsProcess) this.#timer.unref();
    destroyed.on('abort', this.#abort);
    signal?.addEventListener('abort', this.#abort);
    if (destroyed.aborted || signal?.aborted) this.#abort();
  }

  endDeadline(): void {
    clearTimer(this.#timer);
  }

  #timeoutError(timeoutMs: number): Error {
    return this.waitsFor === undefined
      ? new DeadlineError(`no answer within ${timeoutMs} ms`)
      : new SetupError(`\`${this.waitsFor}\` did not return within ${timeoutMs} ms`);
  }

  end(): void {
    this.endDeadline();
    this.#destroyed.off('abort', this.#abort);
    this.#signal?.removeEventListener('abort', this.#abort);
  }
}
