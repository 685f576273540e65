import { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { addressOf } from '../config/checker.ts';
import { nodeModule } from '../platform/node.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { clearTimer, setTimer } from '../platform/timers.ts';
import { createConnections, isReusedConnectionError } from './connections.ts';
import { NoResponseError } from './errors.ts';
import {
  bodyBytes,
  CLOSED,
  type HttpClientOptions,
  type HttpHeaders,
  type HttpRequest,
  type HttpResponse,
  isKeyless,
  isKeyRefused,
  OPTIONAL_BODY_MS,
  type Progress,
  RESPONSE_BYTES_MAX,
  type Transport,
  timeoutError,
  type UnreadResponse,
} from './transport.ts';

/** Sends requests with undici, and loads undici for the first request. */
export class HttpClient implements Transport {
  readonly #options: HttpClientOptions;
  readonly #origin: string;
  readonly #basePath: string;
  #headers: HttpClientOptions['headers'];
  readonly #attempts = new Set<Attempt>();
  #isDestroyed = false;
  #pool: Promise<Dispatcher> | undefined;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#headers = options.headers;
    this.#origin = options.endpoint.origin;
    this.#basePath = addressOf(options.endpoint).slice(this.#origin.length);
  }

  setHeaders(headers: HttpClientOptions['headers']): void {
    this.#headers = headers;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const timeoutMs = Math.min(request.timeoutMs ?? Number.POSITIVE_INFINITY, this.#options.requestTimeoutMs);
    const attempt = this.#begin(request.signal, timeoutMs);
    try {
      return await this.#within(attempt, (dispatcher) => this.#exchange(dispatcher, request, attempt));
    } finally {
      attempt.end();
    }
  }

  /**
   * Sends a request once, and resolves when the response headers arrive. The caller must limit the time and size of the
   * response body.
   */
  async open(request: HttpRequest): Promise<UnreadResponse> {
    const attempt = this.#begin(request.signal, request.timeoutMs ?? this.#options.requestTimeoutMs);
    try {
      const { statusCode, headers, body } = await this.#within(attempt, async (dispatcher) => {
        const own = typeof this.#headers === 'function' ? await this.#headers(attempt) : this.#headers;
        return this.#dispatch(dispatcher, own, request, attempt, { headersTimeout: 0, bodyTimeout: 0 });
      });
      attempt.endDeadline();
      body.once('close', () => attempt.end());
      // Prevents an uncaught exception if the body fails. Readers still receive the error.
      body.on('error', () => {});
      return { status: statusCode, headers, body };
    } catch (thrown) {
      attempt.end();
      // undici destroys the request stream only if it has started to read the stream.
      request.stream?.stream.destroy();
      throw thrown;
    }
  }

  /** Closes all connections. A dispatcher from the `dispatcher` option stays open. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    for (const attempt of this.#attempts) attempt.abort(new NoResponseError(CLOSED));
    const pool = await this.#pool?.catch(() => undefined);
    await pool?.destroy();
  }

  #begin(signal: AbortSignal | undefined, timeoutMs: number): Attempt {
    const attempt = new Attempt(this.#attempts, signal, timeoutMs, this.#options.holdsProcess ?? false);
    if (this.#isDestroyed) attempt.abort(new NoResponseError(CLOSED));
    return attempt;
  }

  async #within<Result>(attempt: Attempt, send: (dispatcher: Dispatcher) => Promise<Result>): Promise<Result> {
    const dispatcher = this.#options.dispatcher ?? (await (this.#pool ?? this.#connect()));
    if (attempt.aborted) throw attempt.reason;
    return new Promise((resolve, reject) => {
      // Rejects immediately, because a custom dispatcher may ignore the signal.
      attempt.once('abort', () => reject(attempt.reason));
      send(dispatcher).then(resolve, reject);
    });
  }

  async #exchange(dispatcher: Dispatcher, request: HttpRequest, attempt: Attempt): Promise<HttpResponse> {
    const source = this.#headers;
    const headers = typeof source === 'function' ? await source(attempt) : source;
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#dispatch(dispatcher, headers, request, attempt);
    } catch (error) {
      // If the service closed an idle connection, the request is retried immediately on another connection.
      if (!isReusedConnectionError(error)) throw error;
      response = await this.#dispatch(dispatcher, headers, request, attempt);
    }
    const { statusCode: status } = response;
    if (request.isBodyOptional) attempt.endDeadline();
    const bytes = await (request.isBodyOptional ? readOptional(response.body) : readBytes(response.body));
    // If the application has changed the API key meanwhile, the request is retried with the new key.
    if (isKeyRefused(status) && this.#headers !== source) return this.#exchange(dispatcher, request, attempt);
    return { status, headers: response.headers, bytes, text: bytes.toString('utf8'), isKeyless: isKeyless(headers) };
  }

  #dispatch(
    dispatcher: Dispatcher,
    headers: HttpHeaders,
    request: HttpRequest,
    attempt: Attempt,
    timeouts?: { headersTimeout: number; bodyTimeout: number },
  ): Promise<Dispatcher.ResponseData> {
    // undici would open a connection before checking the signal.
    if (attempt.aborted) throw attempt.reason;
    const options = {
      origin: this.#origin,
      path: this.#basePath + request.path || '/',
      method: request.method,
      headers: { ...headers, ...request.headers, ...lengthOf(request) },
      body: bodyOf(request),
      ...timeouts,
      signal: attempt,
      // Forbids redirects, because a custom dispatcher could send the API key to another origin.
      maxRedirections: 0,
    } as unknown as Dispatcher.RequestOptions;
    return withoutTracing(() => dispatcher.request(options));
  }

  #connect(): Promise<Dispatcher> {
    this.#pool = withoutTracing(() => createConnections(this.#options));
    this.#pool.catch(() => {
      this.#pool = undefined;
    });
    return this.#pool;
  }
}

function bodyOf({ body, stream }: HttpRequest): string | Uint8Array | Readable | null {
  if (stream !== undefined) return stream.stream;
  return body === undefined || body.length <= 1 ? (body?.[0] ?? null) : nodeModule('node:stream').Readable.from(body);
}

function lengthOf({ body, stream }: HttpRequest): Record<string, string> {
  if (body === undefined && stream === undefined) return {};
  return { 'content-length': String(stream?.bytes ?? bodyBytes(body)) };
}

function readBytes(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const take = (): void => resolve(Buffer.concat(chunks).subarray(0, RESPONSE_BYTES_MAX));
    body.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < RESPONSE_BYTES_MAX) return;
      take();
      // The rest of the body is not needed. `destroy` closes the connection.
      body.destroy();
    });
    body.once('end', take);
    body.on('error', reject);
    body.once('close', () => reject(new NoResponseError('the response was incomplete')));
  });
}

/** Returns no bytes if the body is cut off or does not end within a second. */
async function readOptional(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const timer = setTimer(() => body.destroy(), OPTIONAL_BODY_MS).unref();
  try {
    return await readBytes(body);
  } catch {
    return Buffer.alloc(0);
  } finally {
    clearTimer(timer);
  }
}

/**
 * An attempt to send a request. undici uses the attempt as the abort signal. The attempt aborts when the deadline
 * passes, the caller's signal aborts or the client is destroyed. An `EventEmitter` is faster than an `AbortSignal`.
 */
class Attempt extends EventEmitter implements Progress {
  aborted = false;
  reason: unknown;
  waitsFor: string | undefined;
  readonly #attempts: Set<Attempt>;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #onSignal = (): void => this.abort(this.#signal?.reason);

  constructor(attempts: Set<Attempt>, signal: AbortSignal | undefined, timeoutMs: number, holdsProcess: boolean) {
    super();
    this.#attempts = attempts.add(this);
    this.#signal = signal;
    this.#timer = setTimer(() => this.abort(timeoutError(this, timeoutMs)), timeoutMs);
    if (!holdsProcess) this.#timer.unref();
    signal?.addEventListener('abort', this.#onSignal);
    if (signal?.aborted) this.#onSignal();
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.emit('abort');
  }

  endDeadline(): void {
    clearTimer(this.#timer);
  }

  end(): void {
    clearTimer(this.#timer);
    this.#attempts.delete(this);
    this.#signal?.removeEventListener('abort', this.#onSignal);
  }
}
