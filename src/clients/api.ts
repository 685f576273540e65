import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { checkedOptions, shownAddress } from '../config/checker.ts';
import { createClient } from '../http/create-client.ts';
import { DeadlineError } from '../http/errors.ts';
import { failureOf } from '../http/failure.ts';
import { backoffMs, isTransient, retryAfterMs } from '../http/retry.ts';
import type { Transport, UnreadResponse } from '../http/transport.ts';
import { allowListeners, types } from '../platform/node.ts';
import { delay, monotonicNowMs, wallNowMs } from '../platform/timers.ts';
import { parseBody, RESPONSE_BYTES_MAX, readText } from './body.ts';
import {
  type CallOptions,
  type ClientHooks,
  type ClientOptions,
  callChecks,
  mergedHeaders,
  type RequestEvent,
  serviceAddress,
} from './client-options.ts';
import { type Call, queryText } from './endpoint.ts';
import {
  ApiError,
  type CallFacts,
  ConnectionError,
  InvalidRequestError,
  InvalidResponseError,
  requestIdOf,
  TimeoutError,
} from './errors.ts';
import { Secrets, secretsIn } from './secrets.ts';

/** Maximum number of bytes to read from the body of an error response. */
const FAILURE_BYTES_MAX = 256 * 1024;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 8_000;
const CLOSED = 'the client was closed';

/** A service's base URL and credentials. */
export interface Service {
  /** Name of the option that sets the base URL, for use in errors. */
  readonly option: string;
  readonly url: unknown;
  /** Headers that must be sent only to the service. */
  readonly credentials: Readonly<Record<string, string | undefined>>;
}

export interface ApiOptions extends Omit<ClientOptions, 'apiKey'> {
  readonly url: URL;
  /** Additional values to mask in errors, recorded runs and hooks. */
  readonly secrets?: readonly string[];
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** The data and headers of a successful response. */
export interface ApiResponse<Data> {
  /** Parsed body, or undefined if the body is empty. */
  readonly data: Data;
  readonly status: number;
  /** Response headers, keyed by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Returns the Api for a service. Throws a RunspanError if the base URL is invalid. */
export function serviceApi({ option, url, credentials }: Service, options: ClientOptions): Api {
  const { apiKey: _, headers: custom = {}, ...rest } = options;
  const own = Object.entries(credentials).flatMap(([name, value]) => (value ? [[name, value.trim()]] : []));
  const headers = { ...Object.fromEntries(own), ...custom };
  const hasKey = secretsIn(headers).length > 0;
  const { allowInsecure } = options;
  return new Api({ ...rest, url: serviceAddress(option, url, { hasKey, allowInsecure }), headers });
}

/**
 * Sends requests and applies timeouts, retries and hooks. A call rejects with an ApiError, ConnectionError,
 * TimeoutError or InvalidResponseError. If the caller's signal aborts, the call rejects with the signal's reason.
 */
export class Api {
  readonly #options: ApiOptions;
  readonly #http: Transport;
  readonly #address: string;
  readonly #secrets: Secrets;
  readonly #closing = new AbortController();
  readonly timeoutMs: number;

  constructor(options: ApiOptions) {
    const { url, timeoutMs = 60_000, connectTimeoutMs, dispatcher, fetch, headers, secrets = [] } = options;
    this.#options = options;
    this.timeoutMs = timeoutMs;
    this.#secrets = new Secrets([...secrets, ...secretsIn(headers)]);
    this.#address = shownAddress(url);
    this.#http = createClient({
      endpoint: url,
      headers: {},
      connectTimeoutMs,
      requestTimeoutMs: timeoutMs,
      dispatcher,
      fetch,
      holdsProcess: true,
    });
    // Every call adds a listener to this signal, and Node warns about more than ten listeners.
    allowListeners(this.#closing.signal);
  }

  /** Headers of every request, with the API key. */
  get headers(): ApiOptions['headers'] {
    return this.#options.headers;
  }

  /** Returns the full URL of a path, without a query. */
  urlOf(path: string): string {
    return this.#address + path.replace(/\?.*$/s, '');
  }

  /** Sends a call and reads the whole response. */
  async send<Data>(call: Call): Promise<ApiResponse<Data>> {
    const { response = 'object' } = call;
    try {
      return await this.#send(call, async (attempt, { status, headers, body }) => {
        const text = await readText(body, { timeoutMs: attempt.leftMs(), bytesMax: RESPONSE_BYTES_MAX });
        const { data, problem } = parseBody(response, text, headers);
        if (problem !== undefined) throw this.invalidResponse(call, { status, headers }, problem, attempt.facts);
        return { data: data as Data, status, headers };
      });
    } catch (thrown) {
      const isGone = thrown instanceof ApiError && thrown.status === 404 && thrown.request.attempts > 1;
      // A 404 after a retry means that an earlier attempt deleted the resource.
      if (!isGone || call.method !== 'DELETE' || response !== 'none') throw thrown;
      return { data: undefined as Data, status: thrown.status, headers: thrown.headers };
    }
  }

  /**
   * Sends a call and resolves when the response headers arrive. No timeout applies to reading the body. If the caller's
   * signal aborts, reading fails with the signal's reason.
   */
  async open(call: Call): Promise<UnreadResponse> {
    return this.#send(call, async (_, response) => response);
  }

  invalidResponse(
    call: Call,
    { status, headers }: Omit<ApiResponse<unknown>, 'data'>,
    problem: string,
    facts: CallFacts = this.factsOf(call),
  ): InvalidResponseError {
    return new InvalidResponseError(facts, { status, headers: this.#secretsOf(call).maskedHeaders(headers) }, problem);
  }

  factsOf(call: Call): CallFacts {
    return { method: call.method, url: this.masked(this.urlOf(call.path), call), attempts: 1 };
  }

  /** Masks the call's API keys and secrets in text from the service. */
  masked(text: string, call: Call): string {
    return this.#secretsOf(call).masked(text);
  }

  /**
   * Waits for `ms` milliseconds. If the signal aborts, rejects with the signal's reason. If the client closes, rejects
   * with a ConnectionError.
   */
  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    // On Node 20, `AbortSignal.any` leaks memory if one of the signals is long-lived.
    const ends = new AbortController();
    const abort = (): void => ends.abort(signal?.aborted ? signal.reason : this.closing.reason);
    const signals = [this.closing, ...(signal ? [signal] : [])];
    for (const one of signals) one.addEventListener('abort', abort);
    if (signals.some(({ aborted }) => aborted)) abort();
    try {
      await delay(ms, ends.signal, true);
    } finally {
      for (const one of signals) one.removeEventListener('abort', abort);
    }
  }

  /** A signal that aborts with a ConnectionError when the client closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get isClosed(): boolean {
    return this.closing.aborted;
  }

  /** Rejects all pending calls with a ConnectionError and closes the connections. */
  async close(): Promise<void> {
    this.#closing.abort(new ConnectionError({ method: 'GET', url: this.#address, attempts: 0 }, CLOSED, false));
    await this.#http.destroy();
  }

  async #send<Result>(call: Call, take: Take<Result>): Promise<Result> {
    const options = checkedOptions<CallOptions>(`the options of ${call.name}`, call.options ?? {}, callChecks);
    const { signal, timeoutMs = this.timeoutMs, maxRetries = this.#options.maxRetries ?? 2 } = options;
    // Many calls may share this signal, and Node warns about more than ten listeners.
    if (signal !== undefined) allowListeners(signal);
    const untilMs = monotonicNowMs() + timeoutMs;
    const leftMs = (): number => untilMs - monotonicNowMs();
    const { url: address, allowInsecure } = this.#options;
    const hasKey = secretsIn(options.headers).length + secretsIn(call.headers).length > 0;
    if (hasKey) serviceAddress('the URL of the client', address, { hasKey, allowInsecure });
    const secrets = this.#secretsOf(call);
    const url = secrets.masked(this.urlOf(call.path));
    const body = jsonTextOf(call, secrets);
    for (let attempts = 1; ; attempts++) {
      const facts = { method: call.method, url, attempts };
      try {
        return await this.#attempt({ call, body, options, timeoutMs, leftMs, facts, secrets }, take);
      } catch (thrown) {
        if (!(thrown instanceof FailedAttempt)) throw thrown;
        const { error } = thrown;
        const delayMs = thrown.isLasting ? undefined : retryDelayMs(call, error, attempts - 1);
        if (delayMs === undefined || attempts > maxRetries || delayMs >= leftMs() || this.isClosed) throw error;
        this.#callHook('onRetry', { ...eventOf(call, facts), error, delayMs });
        await this.wait(delayMs, signal).catch(() => {
          signal?.throwIfAborted();
          throw new ConnectionError(facts, CLOSED, false);
        });
      }
    }
  }

  async #attempt<Result>(attempt: Attempt, take: Take<Result>): Promise<Result> {
    const { call, options, facts, secrets, body } = attempt;
    const event = eventOf(call, facts);
    const startedMs = monotonicNowMs();
    options.signal?.throwIfAborted();
    if (this.isClosed) throw new ConnectionError(facts, CLOSED, false);
    this.#callHook('onRequest', event);
    const stream = call.stream?.();
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    try {
      const response = await this.#http.open({
        method: call.method,
        path: call.path + queryText(call.query),
        headers: mergedHeaders(ACCEPT_JSON, type, this.#options.headers, call.headers, options.headers),
        timeoutMs: Math.max(1, attempt.leftMs()),
        ...(body !== undefined && { body: [body] }),
        ...(stream !== undefined && { stream }),
        ...(options.signal !== undefined && { signal: options.signal }),
      });
      const { status } = response;
      const headers = secrets.maskedHeaders(response.headers);
      const durationMs = monotonicNowMs() - startedMs;
      this.#callHook('onResponse', { ...event, status, requestId: requestIdOf(headers), durationMs });
      if (status >= 200 && status < 300) return await take(attempt, response);
      const text = await this.#failureText(response, attempt);
      throw new FailedAttempt(new ApiError(facts, { status, headers, text: secrets.maskedBody(text) }));
    } catch (thrown) {
      options.signal?.throwIfAborted();
      if (thrown instanceof FailedAttempt || thrown instanceof InvalidResponseError) throw thrown;
      if (thrown instanceof DeadlineError) throw new TimeoutError(facts, attempt.timeoutMs);
      const { detail, isLasting, isUnsent } = failureOf(thrown);
      throw new FailedAttempt(new ConnectionError(facts, detail, !isUnsent), isLasting);
    } finally {
      stream?.stream.destroy();
    }
  }

  /**
   * Reads the body of an error response. Returns an empty string if the connection breaks, because the status is enough
   * to create the error.
   */
  async #failureText({ body }: UnreadResponse, { leftMs, options }: Attempt): Promise<string> {
    try {
      return (await readText(body, { timeoutMs: leftMs(), bytesMax: FAILURE_BYTES_MAX, truncate: true })) ?? '';
    } catch (thrown) {
      if (thrown instanceof DeadlineError || this.isClosed || options.signal?.aborted) throw thrown;
      return '';
    }
  }

  #secretsOf({ secrets = [], headers, options }: Call): Secrets {
    return this.#secrets.with([...secrets, ...secretsIn(headers), ...secretsIn(options?.headers)]);
  }

  #callHook<Name extends keyof ClientHooks>(name: Name, event: Parameters<NonNullable<ClientHooks[Name]>>[0]): void {
    const report = (thrown: unknown): void => {
      const problem = this.#secrets.masked(messageOf(thrown));
      diagnostics.warnOnce(`hook ${name}`, `clients: the hook ${name} threw (${problem}); the call continues.`);
    };
    try {
      const result = (this.#options.hooks?.[name] as ((event: unknown) => unknown) | undefined)?.(event);
      if (types.isPromise(result)) result.catch(report);
    } catch (thrown) {
      report(thrown);
    }
  }
}

const ACCEPT_JSON = { accept: 'application/json' };

interface Attempt {
  readonly call: Call;
  readonly body: string | undefined;
  readonly options: CallOptions;
  readonly timeoutMs: number;
  readonly leftMs: () => number;
  readonly facts: CallFacts;
  readonly secrets: Secrets;
}

type Take<Result> = (attempt: Attempt, response: UnreadResponse) => Promise<Result>;

/** A failed attempt to send a request. Permanent failures are not retried. */
class FailedAttempt extends Error {
  readonly error: ApiError | ConnectionError;
  readonly isLasting: boolean;

  constructor(error: ApiError | ConnectionError, isLasting = false) {
    super(error.message);
    this.error = error;
    this.isLasting = isLasting;
  }
}

/**
 * Returns the delay before the next attempt in milliseconds, or undefined if the call must not be retried. A call that
 * is not idempotent is retried only if the connection could not be opened, or after status 429 (RFC 6585, 4). In both
 * cases, the service has not processed the call.
 */
function retryDelayMs(call: Call, error: ApiError | ConnectionError, retries: number): number | undefined {
  const { isIdempotent = !['POST', 'PATCH'].includes(call.method) } = call;
  const jitterMs = backoffMs(retries, Math.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS);
  if (error instanceof ConnectionError) return isIdempotent || !error.mayHaveArrived ? jitterMs : undefined;
  if (!isTransient(error.status) || !(isIdempotent || error.status === 429)) return undefined;
  return retryAfterMs(error.headers, wallNowMs()) ?? jitterMs;
}

function eventOf({ name, method }: Call, { url, attempts }: CallFacts): RequestEvent {
  return { call: name, method, url, attempt: attempts };
}

function jsonTextOf({ name, body }: Call, secrets: Secrets): string | undefined {
  if (body === undefined) return undefined;
  try {
    return JSON.stringify(body);
  } catch (thrown) {
    const msg = `Expected a value that JSON can represent (${secrets.masked(messageOf(thrown))})`;
    throw new InvalidRequestError(name, [{ loc: ['body'], msg, type: 'json_invalid' }]);
  }
}
