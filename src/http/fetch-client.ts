import { ownRequests } from '../base/own-requests.ts';
import { addressOf } from '../config/checker.ts';
import { nodeModule } from '../platform/node.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { clearTimer, setTimer } from '../platform/timers.ts';
import { NoResponseError, SetupError } from './errors.ts';
import {
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
  type ResponseBody,
  type Transport,
  timeoutError,
  type UnreadResponse,
} from './transport.ts';

/**
 * Sends requests with `fetch` on runtimes without undici. The runtime manages connections, so connection and proxy
 * options have no effect.
 */
export class FetchClient implements Transport {
  readonly #options: HttpClientOptions;
  readonly #address: string;
  readonly #attempts = new Set<Attempt>();
  #headers: HttpClientOptions['headers'];
  #isDestroyed = false;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#headers = options.headers;
    this.#address = addressOf(options.endpoint);
  }

  setHeaders(headers: HttpClientOptions['headers']): void {
    this.#headers = headers;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { requestTimeoutMs } = this.#options;
    const attempt = this.#begin(request, Math.min(request.timeoutMs ?? requestTimeoutMs, requestTimeoutMs));
    const source = this.#headers;
    let response: HttpResponse;
    try {
      const own = await this.#ownHeaders(attempt);
      const fetched = await this.#fetch(own, request, attempt);
      const { status, headers } = fetched;
      if (request.isBodyOptional) attempt.shorten(OPTIONAL_BODY_MS);
      const read = readBytes(fetched.body);
      const inTime = Promise.race([read, attempt.aborted]);
      const bytes = await (request.isBodyOptional ? inTime.catch(() => new Uint8Array()) : inTime);
      const text = new TextDecoder().decode(bytes);
      response = { status, headers: Object.fromEntries(headers), bytes, text, isKeyless: isKeyless(own) };
    } catch (thrown) {
      throw causeOf(thrown, attempt.signal);
    } finally {
      attempt.end();
    }
    // If the application has changed the API key meanwhile, the request is retried with the new key.
    return isKeyRefused(response.status) && this.#headers !== source ? this.send(request) : response;
  }

  async open(request: HttpRequest): Promise<UnreadResponse> {
    const attempt = this.#begin(request, request.timeoutMs ?? this.#options.requestTimeoutMs);
    try {
      const response = await this.#fetch(await this.#ownHeaders(attempt), request, attempt);
      const { status, headers, body } = response;
      return { status, headers: Object.fromEntries(headers), body: bodyFrom(body, attempt) };
    } catch (thrown) {
      attempt.end();
      throw causeOf(thrown, attempt.signal);
    } finally {
      attempt.endDeadline();
    }
  }

  abort(): void {
    for (const attempt of this.#attempts) attempt.abort(new NoResponseError('the process ends'));
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    for (const attempt of this.#attempts) attempt.abort(new NoResponseError(CLOSED));
  }

  #begin({ signal }: HttpRequest, timeoutMs: number): Attempt {
    const attempt = new Attempt(this.#attempts, signal, timeoutMs);
    if (this.#isDestroyed) attempt.abort(new NoResponseError(CLOSED));
    return attempt;
  }

  async #ownHeaders(attempt: Attempt): Promise<HttpHeaders> {
    attempt.signal.throwIfAborted();
    if (typeof this.#headers !== 'function') return this.#headers;
    return Promise.race([this.#headers(attempt), attempt.aborted]);
  }

  async #fetch(own: HttpHeaders, request: HttpRequest, { signal, aborted }: Attempt): Promise<Response> {
    const { method, path, headers } = request;
    const init = {
      method,
      headers: { ...own, ...headers },
      ...bodyOf(request),
      // Redirects are not followed, because another origin could receive the API key.
      redirect: 'manual',
      signal,
      // On Cloudflare Workers with an early compatibility date, `fetch` throws if `cache` is set.
      ...(method === 'GET' && 'cache' in Request.prototype && { cache: 'no-store' }),
    } as RequestInit;
    ownRequests.add(init);
    const send = this.#options.fetch ?? fetch;
    // The application's function may ignore the signal.
    const response = await Promise.race([withoutTracing(() => send(this.#address + path, init)), aborted]);
    // In browsers, a redirect has the response type `opaqueredirect`, and its status is hidden.
    if (response.type === 'opaqueredirect')
      throw new SetupError('the service redirects to another URL; set the URL of the service itself');
    return response;
  }
}

/**
 * An attempt to send a request. Aborts when the deadline passes, the caller's signal aborts or the client is closed.
 */
class Attempt implements Progress {
  waitsFor: string | undefined;
  readonly #attempts: Set<Attempt>;
  readonly #ending = new AbortController();
  /** Rejects when the attempt aborts. */
  readonly aborted: Promise<never> = new Promise((_, reject) => {
    this.signal.addEventListener('abort', () => reject(this.signal.reason));
  });
  readonly #caller: AbortSignal | undefined;
  #timer: NodeJS.Timeout;
  readonly #onCaller = (): void => this.abort(this.#caller?.reason);

  constructor(attempts: Set<Attempt>, caller: AbortSignal | undefined, timeoutMs: number) {
    this.#attempts = attempts.add(this);
    this.#caller = caller;
    this.aborted.catch(() => {});
    this.#timer = setTimer(() => this.abort(timeoutError(this, timeoutMs)), timeoutMs);
    caller?.addEventListener('abort', this.#onCaller);
    if (caller?.aborted) this.#onCaller();
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  abort(reason: unknown): void {
    this.#ending.abort(reason);
  }

  endDeadline(): void {
    clearTimer(this.#timer);
  }

  shorten(timeoutMs: number): void {
    this.endDeadline();
    this.#timer = setTimer(() => this.abort(timeoutError(this, timeoutMs)), timeoutMs);
  }

  end(): void {
    this.endDeadline();
    this.#attempts.delete(this);
    this.#caller?.removeEventListener('abort', this.#onCaller);
  }
}

async function readBytes(stream: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  const bytes = new Uint8Array(RESPONSE_BYTES_MAX);
  const reader = stream?.getReader();
  let length = 0;
  while (length < RESPONSE_BYTES_MAX) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) return bytes.slice(0, length);
    bytes.set(value.subarray(0, RESPONSE_BYTES_MAX - length), length);
    length += value.length;
  }
  // The rest of the body is not needed.
  void reader?.cancel().catch(() => {});
  return bytes;
}

function bodyOf({ body = [], stream }: HttpRequest): Pick<RequestInit, 'body' | 'duplex'> {
  if (stream !== undefined) return { body: nodeModule('node:stream').Readable.toWeb(stream.stream), duplex: 'half' };
  // Creating a `Blob` copies the parts, so a single part is passed as it is.
  return { body: body.length > 1 ? new Blob(body as string[]) : (body[0] ?? null) };
}

function bodyFrom(stream: ReadableStream<Uint8Array> | null, attempt: Attempt): ResponseBody {
  const destroy = (error = new NoResponseError('the response was closed') as Error): void => {
    attempt.end();
    attempt.abort(error);
  };
  return {
    destroy,
    async *[Symbol.asyncIterator]() {
      const reader = stream?.getReader();
      try {
        for (;;) {
          const step = await reader?.read();
          if (step?.value === undefined) return;
          yield step.value;
        }
      } catch (thrown) {
        throw causeOf(thrown, attempt.signal);
      } finally {
        destroy();
      }
    },
  };
}

/**
 * Returns the cause of a failed `fetch`. On Bun, the `TypeError` itself has an error code. On Deno, the problem is
 * named only in the message of the `cause`. In browsers, the `TypeError` has no `cause`.
 */
function causeOf(thrown: unknown, { aborted, reason }: AbortSignal): unknown {
  if (aborted) return reason;
  if (!(thrown instanceof TypeError) || 'code' in thrown) return thrown;
  const { cause } = thrown;
  if (cause instanceof Error && !('code' in cause)) {
    if (cause.message.includes('Connection refused')) return Object.assign(cause, { code: 'ECONNREFUSED' });
    if (cause.message.includes('dns error')) return Object.assign(cause, { code: 'ENOTFOUND' });
  }
  return cause ?? new NoResponseError('no response arrived, or the connection broke');
}
