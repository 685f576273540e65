import { clearTimer, setTimer } from '../platform/timers.ts';
import { NoResponseError } from './errors.ts';
import {
  type HttpClientOptions,
  type HttpHeaders,
  type HttpRequest,
  type HttpResponse,
  isKeyless,
  isKeyRefused,
  type Progress,
  RESPONSE_BYTES_MAX,
  type ResponseBody,
  requestTimeout,
  type Transport,
  type UnreadResponse,
} from './transport.ts';

/** Maximum time to read an optional body, in milliseconds. A connection is reused if its body is read to the end. */
const OPTIONAL_BODY_MS = 1_000;

const CLOSED = 'the client was closed';

/** What all transports share: deadlines, signals, headers, and reading a response. */
export abstract class BaseClient implements Transport {
  protected readonly options: HttpClientOptions;
  readonly #attempts = new Set<Attempt>();
  #headers: HttpClientOptions['headers'];
  #isDestroyed = false;

  constructor(options: HttpClientOptions) {
    this.options = options;
    this.#headers = options.headers;
  }

  /** Sends a request with the client's own headers once. Resolves when the response headers arrive. */
  protected abstract exchange(own: HttpHeaders, request: HttpRequest, attempt: Attempt): Promise<UnreadResponse>;

  /** Decodes a body by its `content-encoding`. The body may be cut off. `fetch` has already decoded it. */
  protected decoded(bytes: Uint8Array, _headers: HttpResponse['headers']): Uint8Array {
    return bytes;
  }

  /** Whether a request of `send` is repeated immediately after this error. */
  protected isRepeated(_error: unknown): boolean {
    return false;
  }

  setHeaders(headers: HttpClientOptions['headers']): void {
    this.#headers = headers;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { requestTimeoutMs } = this.options;
    const attempt = this.#begin(request, Math.min(request.timeoutMs ?? requestTimeoutMs, requestTimeoutMs));
    const source = this.#headers;
    let isRepeated = false;
    try {
      const own = await this.#ownHeaders(attempt);
      const exchange = () => attempt.within(this.exchange(own, request, attempt));
      const { status, headers, body } = await exchange().catch((error) => {
        isRepeated = this.isRepeated(error);
        if (isRepeated) return exchange();
        throw error;
      });
      if (request.isBodyOptional) attempt.limit(OPTIONAL_BODY_MS);
      const read = attempt.within(readBytes(body));
      const received = await (request.isBodyOptional ? read.catch(() => new Uint8Array()) : read);
      const bytes = this.decoded(received, headers);
      // If the application has changed the API key meanwhile, the request is retried with the new key.
      if (isKeyRefused(status) && this.#headers !== source) return await this.send(request);
      return { status, headers, bytes, text: new TextDecoder().decode(bytes), isKeyless: isKeyless(own), isRepeated };
    } finally {
      attempt.end();
    }
  }

  async open(request: HttpRequest): Promise<UnreadResponse> {
    const attempt = this.#begin(request, request.timeoutMs ?? this.options.requestTimeoutMs);
    try {
      const own = await this.#ownHeaders(attempt);
      const response = await attempt.within(this.exchange(own, request, attempt));
      attempt.endDeadline();
      return response;
    } catch (thrown) {
      attempt.end();
      throw thrown;
    }
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    this.abortAll(CLOSED);
  }

  protected abortAll(reason: string): void {
    for (const attempt of this.#attempts) attempt.abort(new NoResponseError(reason));
  }

  #begin({ signal }: HttpRequest, timeoutMs: number): Attempt {
    const attempt = new Attempt(this.#attempts, signal, this.options.holdsProcess ?? false);
    attempt.limit(timeoutMs);
    if (this.#isDestroyed) attempt.abort(new NoResponseError(CLOSED));
    return attempt;
  }

  async #ownHeaders(attempt: Attempt): Promise<HttpHeaders> {
    attempt.signal.throwIfAborted();
    return typeof this.#headers === 'function' ? attempt.within(this.#headers(attempt)) : this.#headers;
  }
}

/** An attempt to send a request. Aborts at the deadline, with the caller's signal, or when the client is closed. */
export class Attempt implements Progress {
  waitsFor: string | undefined;
  readonly #attempts: Set<Attempt>;
  readonly #ending = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #holdsProcess: boolean;
  #timer: NodeJS.Timeout | undefined;
  readonly #onCaller = (): void => this.abort(this.#caller?.reason);

  constructor(attempts: Set<Attempt>, caller: AbortSignal | undefined, holdsProcess: boolean) {
    this.#attempts = attempts.add(this);
    this.#caller = caller;
    this.#holdsProcess = holdsProcess;
    caller?.addEventListener('abort', this.#onCaller);
    if (caller?.aborted) this.#onCaller();
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  abort(reason: unknown): void {
    this.#ending.abort(reason);
  }

  /** Rejects as soon as the attempt aborts, because a custom dispatcher or `fetch` may ignore the signal. */
  within<Result>(result: Promise<Result>): Promise<Result> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason);
      const settle =
        <Value>(end: (value: Value) => void) =>
        (value: Value): void => {
          signal.removeEventListener('abort', onAbort);
          end(value);
        };
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
      result.then(settle(resolve), settle(reject));
    });
  }

  limit(timeoutMs: number): void {
    this.endDeadline();
    this.#timer = setTimer(() => this.abort(requestTimeout(this, timeoutMs)), timeoutMs);
    if (!this.#holdsProcess) this.#timer.unref();
  }

  endDeadline(): void {
    clearTimer(this.#timer);
  }

  end(): void {
    this.endDeadline();
    this.#attempts.delete(this);
    this.#caller?.removeEventListener('abort', this.#onCaller);
  }
}

/** Reads at most `RESPONSE_BYTES_MAX` bytes. The rest of the body is not needed. */
async function readBytes(body: ResponseBody): Promise<Uint8Array> {
  const bytes = new Uint8Array(RESPONSE_BYTES_MAX);
  let length = 0;
  for await (const chunk of body) {
    const kept = chunk.subarray(0, RESPONSE_BYTES_MAX - length);
    bytes.set(kept, length);
    length += kept.length;
    if (length === RESPONSE_BYTES_MAX) break;
  }
  return bytes.slice(0, length);
}
