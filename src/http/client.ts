import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { withoutTracing } from '../base/suppression.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import { createConnections, isOfUsedConnection } from './connections.ts';
import { NoAnswerError } from './failure.ts';
import type { Proxies } from './proxies.ts';

/** Bytes of an answer that are read; the rest is not waited for. */
const ANSWER_BYTES_MAX = 64 * 1024;

export interface HttpClientOptions {
  /** Paths are appended to its own path. */
  readonly endpoint: URL;
  /** Sent with every request, to this endpoint only: redirects are not followed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Sends the requests instead of our own connection pool; the proxies are not used then. */
  readonly dispatcher?: Dispatcher | undefined;
  readonly proxies?: Proxies | undefined;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Begins with a slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent one chunk after the other, with the length of all of them. */
  readonly body?: readonly (string | Uint8Array)[];
  readonly signal?: AbortSignal;
  /** Milliseconds for this request, where it has to be answered sooner than others. */
  readonly timeoutMs?: number;
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

/**
 * Sends single requests with a deadline to one endpoint. Its sockets never keep the process alive, its requests are
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
    const breaker = new Breaker();
    const timeoutMs = Math.min(request.timeoutMs ?? Number.POSITIVE_INFINITY, this.#options.requestTimeoutMs);
    const timer = setTimer(
      () => breaker.abort(new NoAnswerError(`no answer within ${timeoutMs} ms`)),
      timeoutMs,
    ).unref();
    const { signal } = request;
    const destroyed = this.#destroyed;
    const abort = (): void => breaker.abort(destroyed.aborted ? destroyed.reason : signal?.reason);
    destroyed.on('abort', abort);
    signal?.addEventListener('abort', abort);
    if (destroyed.aborted || signal?.aborted) abort();
    try {
      const found = this.#dispatcher();
      const dispatcher = found instanceof Promise ? await found : found;
      // undici would connect first.
      if (breaker.aborted) throw breaker.reason;
      return await new Promise((resolve, reject) => {
        // Not every dispatcher heeds it; the deadline has to hold for all.
        breaker.once('abort', () => reject(breaker.reason));
        this.#answer(dispatcher, request, breaker).then(resolve, reject);
      });
    } finally {
      clearTimer(timer);
      destroyed.off('abort', abort);
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Breaks off what is under way. A dispatcher that was passed in is left alone. */
  async destroy(): Promise<void> {
    this.#destroyed.abort(new NoAnswerError('the client was closed'));
    const pool = await Promise.resolve(this.#pool).catch(() => undefined);
    await pool?.destroy();
  }

  async #answer(dispatcher: Dispatcher, request: HttpRequest, breaker: Breaker): Promise<HttpAnswer> {
    const headers = this.#headers;
    const dispatch = () => withoutTracing(() => this.#dispatch(dispatcher, request, breaker));
    const answer = await dispatch().catch((error) => {
      // Nothing has been answered, and the next attempt goes over another connection: no failure worth waiting for.
      if (breaker.aborted || !isOfUsedConnection(error)) throw error;
      return dispatch();
    });
    const { statusCode: status } = answer;
    const text = await readText(answer.body);
    // A key that was replaced meanwhile was rejected, which says nothing about the one that took its place.
    if ((status === 401 || status === 403) && this.#headers !== headers)
      return this.#answer(dispatcher, request, breaker);
    const isKeyless = headers['x-api-key'] === undefined && headers.authorization === undefined;
    return { status, headers: answer.headers, text, isKeyless };
  }

  async #dispatch(dispatcher: Dispatcher, request: HttpRequest, breaker: Breaker): Promise<Dispatcher.ResponseData> {
    return dispatcher.request({
      // Options of undici's that the host has put on all objects, `query` for example, are none of ours.
      __proto__: null,
      origin: this.#options.endpoint.origin,
      path: this.#basePath + request.path,
      method: request.method,
      headers: { ...this.#headers, ...request.headers, ...lengthOf(request.body) },
      body:
        request.body === undefined || request.body.length <= 1
          ? (request.body?.[0] ?? null)
          : Readable.from(request.body),
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

function lengthOf(body: HttpRequest['body']): Record<string, string> {
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
