import { addressOf } from '../base/options.ts';
import { clearTimer, setTimer, withoutTracing } from '../base/timers.ts';
import type { HttpClientOptions, HttpRequest, OpenAnswer, ResponseBody, Transport } from './client.ts';
import { DeadlineError, NoAnswerError, SetupError } from './errors.ts';

const CLOSED = 'the client was closed';

/**
 * Sends requests with `fetch`, for runtimes without undici. Connection and proxy options have no effect, because the
 * runtime manages connections.
 */
export class HttpClient implements Transport {
  readonly #options: HttpClientOptions;
  readonly #address: string;
  readonly #requests = new Set<AbortController>();
  #isDestroyed = false;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#address = addressOf(options.endpoint);
  }

  async open(request: HttpRequest): Promise<OpenAnswer> {
    const { requestTimeoutMs } = this.#options;
    const { method, path, signal, body, timeoutMs = requestTimeoutMs } = request;
    const own = this.#options.headers;
    const ending = new AbortController();
    const abort = (): void => ending.abort(signal?.reason);
    const timer = setTimer(() => ending.abort(new DeadlineError(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const end = (): void => {
      this.#requests.delete(ending);
      signal?.removeEventListener('abort', abort);
    };
    this.#requests.add(ending);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    if (this.#isDestroyed) ending.abort(new NoAnswerError(CLOSED));
    try {
      const headers = typeof own === 'function' ? await own({ waitsFor: undefined }) : own;
      ending.signal.throwIfAborted();
      const init = {
        method,
        headers: { ...headers, ...request.headers },
        body: body === undefined ? null : new Blob(body as string[]),
        // Redirects are not followed, because another origin could receive the API key.
        redirect: 'manual',
        cache: 'no-store',
        signal: ending.signal,
      } as const;
      const response = await withoutTracing(() => fetch(this.#address + path, init));
      // For a redirect, browsers hide the status and set the response type `opaqueredirect`.
      if (response.type === 'opaqueredirect')
        throw new SetupError('the service redirects to another address; set the address of the service itself');
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: new FetchBody(response.body, ending, end),
      };
    } catch (thrown) {
      end();
      throw causeOf(thrown, ending.signal);
    } finally {
      clearTimer(timer);
    }
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    for (const request of this.#requests) request.abort(new NoAnswerError(CLOSED));
  }
}

class FetchBody implements ResponseBody {
  readonly #stream: ReadableStream<Uint8Array> | null;
  readonly #ending: AbortController;
  readonly #onEnd: () => void;

  constructor(stream: ReadableStream<Uint8Array> | null, ending: AbortController, onEnd: () => void) {
    this.#stream = stream;
    this.#ending = ending;
    this.#onEnd = onEnd;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = this.#stream?.getReader();
    try {
      for (;;) {
        const step = await reader?.read();
        if (step?.value === undefined) return;
        yield step.value;
      }
    } catch (thrown) {
      throw causeOf(thrown, this.#ending.signal);
    } finally {
      this.destroy();
    }
  }

  destroy(error?: Error): void {
    this.#onEnd();
    this.#ending.abort(error ?? new NoAnswerError('the response was closed'));
  }
}

/**
 * Returns the cause of a failed `fetch`. In browsers, the TypeError has no cause, and the reason of an abort may be
 * missing.
 */
function causeOf(thrown: unknown, { aborted, reason }: AbortSignal): unknown {
  if (aborted) return reason;
  if (!(thrown instanceof TypeError)) return thrown;
  return thrown.cause ?? new NoAnswerError('no response arrived, or the connection broke');
}
