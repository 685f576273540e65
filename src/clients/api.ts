import { setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import { types } from 'node:util';
import { monotonicNowMs, wallNowMs } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { checkedOptions } from '../base/options.ts';
import { messageOf } from '../base/text.ts';
import { HttpClient, type OpenAnswer } from '../http/client.ts';
import { DeadlineError, NoAnswerError } from '../http/failure.ts';
import { environmentProxies } from '../http/proxies.ts';
import { ApiError, type CallFacts, ConnectionError, InvalidAnswerError, requestIdOf } from './api-error.ts';
import { type Attempt, eventOf, FailedAttempt, failedAttempt, type Head, type Take } from './attempt.ts';
import { bodyText } from './body-text.ts';
import { type Call, queryText } from './call.ts';
import { type CallOptions, type ClientHooks, type ClientOptions, callChecks } from './client-options.ts';
import { mergedHeaders, secretsIn } from './headers.ts';
import { retryDelayMs } from './retry-delay.ts';
import type { Secrets } from './secrets.ts';
import { serviceAddress } from './service-address.ts';
import { InvalidRequestError } from './validation-error.ts';
import { Waits } from './waits.ts';

/** Bytes of an answer that are read; a longer one is an InvalidAnswerError. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** Bytes of an answer that only says what is wrong. */
const FAILURE_BYTES_MAX = 256 * 1024;

const CLOSED = 'the client was closed';

const ACCEPT_JSON = { accept: 'application/json' };

export interface ApiOptions extends Omit<ClientOptions, 'apiKey'> {
  /** Paths of calls are appended to its own. */
  readonly url: URL;
  /** What goes with every request, credentials among it. */
  readonly headers: Readonly<Record<string, string>>;
  /** What no error, run or hook may repeat. */
  readonly secrets: Secrets;
}

/** A successful answer. */
export interface Answer<Data> {
  /** Parsed; undefined where the body is empty. */
  readonly data: Data;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * The one way by which clients send calls: deadline, retries, errors, hooks. It rejects with an ApiError for any status
 * that is no success, a ConnectionError, a TimeoutError, an InvalidAnswerError, or the reason of the caller's signal.
 */
export class Api {
  readonly #options: ApiOptions;
  readonly #http: HttpClient;
  /** For a call that brings none of its own. */
  readonly timeoutMs: number;
  readonly #basePath: string;
  readonly #secrets: Secrets;
  readonly #waits = new Waits();

  constructor(options: ApiOptions) {
    const { url, timeoutMs = 60_000, connectTimeoutMs = 5_000, dispatcher } = options;
    this.#options = options;
    this.timeoutMs = timeoutMs;
    this.#secrets = options.secrets.with(secretsIn(options.headers));
    this.#basePath = url.origin + url.pathname.replace(/(?<!\/)\/+$/, '');
    this.#http = new HttpClient({
      endpoint: url,
      headers: {},
      connectTimeoutMs,
      requestTimeoutMs: timeoutMs,
      dispatcher,
      proxies: environmentProxies(),
      holdsProcess: true,
    });
  }

  /** The address with a path below it, and without a query. */
  urlOf(path: string): string {
    return this.#basePath + path.replace(/\?.*$/s, '');
  }

  /** The body of an answer, as JSON. What it holds is not checked. */
  async json<Data>(call: Call): Promise<Data> {
    return (await this.answer<Data>(call)).data;
  }

  /** The same with the head of the answer. */
  async answer<Data>(call: Call): Promise<Answer<Data>> {
    return this.#send(call, async (attempt, { status, headers, body }, head) => {
      const text = await read(body, ANSWER_BYTES_MAX, attempt, head);
      return { data: jsonOf(text, attempt, head) as Data, status, headers };
    });
  }

  /** The body of an answer, as it is. */
  async text(call: Call): Promise<string> {
    return this.#send(call, (attempt, { status, headers, body }) =>
      read(body, ANSWER_BYTES_MAX, attempt, { status, headers }),
    );
  }

  /** For a call that is answered by its status alone. A page is of somebody else, who asks to log in for example. */
  async none(call: Call): Promise<void> {
    await this.#send(call, async (attempt, { headers, body }, head) => {
      const text = await read(body, ANSWER_BYTES_MAX, attempt, head);
      const isPage = /^text\/html\b/i.test(String(headers['content-type'] ?? '')) && text.trim() !== '';
      if (isPage) throw new InvalidAnswerError(attempt.facts, head, 'is a web page');
    });
  }

  /** What errors tell of a call, for those that come when its answer is read. */
  factsOf(call: Call): CallFacts {
    return { method: call.method, url: this.masked(this.urlOf(call.path), call), attempts: 1 };
  }

  /** A text of the service without the keys and secrets of a call. */
  masked(text: string, call: Call): string {
    return this.#secretsOf(call).masked(text);
  }

  /** The answer as soon as its head has come. Its body has no deadline; it fails with the reason of the caller's signal. */
  async open(call: Call): Promise<OpenAnswer> {
    return this.#send(call, async (_, answer) => answer);
  }

  /** Waits between calls, until the signal is aborted or the client closed. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await this.#waits.wait(ms, signal);
  }

  get isClosed(): boolean {
    return this.#waits.isOver;
  }

  /** Ends what is under way, with a ConnectionError, and closes the connections. */
  async close(): Promise<void> {
    this.#waits.end(new NoAnswerError(CLOSED));
    await this.#http.destroy();
  }

  async #send<Result>(call: Call, take: Take<Result>): Promise<Result> {
    const options = checkedOptions<CallOptions>(`the options of ${call.name}`, call.options ?? {}, callChecks);
    // One signal for many calls is no leak, of which Node would warn at the eleventh.
    if (options.signal !== undefined) setMaxListeners(0, options.signal);
    const timeoutMs = options.timeoutMs ?? this.timeoutMs;
    const untilMs = monotonicNowMs() + timeoutMs;
    const leftMs = (): number => untilMs - monotonicNowMs();
    const retriesMax = options.maxRetries ?? this.#options.maxRetries ?? 2;
    const isIdempotent = call.isIdempotent ?? !['POST', 'PATCH'].includes(call.method);
    this.#allow(options.headers);
    const secrets = this.#secretsOf(call);
    const url = secrets.masked(this.urlOf(call.path));
    const body = jsonTextOf(call, secrets);
    for (let attempts = 1; ; attempts++) {
      const facts: CallFacts = { method: call.method, url, attempts };
      const attempt: Attempt = { call, body, options, timeoutMs, leftMs, facts, secrets };
      try {
        return await this.#attempt(attempt, take);
      } catch (thrown) {
        if (!(thrown instanceof FailedAttempt)) throw thrown;
        const delayMs = retryDelayMs(thrown.failure, isIdempotent, attempts - 1, Math.random(), wallNowMs());
        if (delayMs === undefined || attempts > retriesMax || delayMs >= leftMs() || this.isClosed) throw thrown.error;
        await this.#pause(attempt, thrown.error, delayMs);
      }
    }
  }

  /** Those of the client and of the call, which may bring keys of its own. */
  #secretsOf({ secrets = [], headers, options }: Call): Secrets {
    return this.#secrets.with([...secrets, ...secretsIn(headers), ...secretsIn(options?.headers)]);
  }

  /** Throws where a key of the call's own must not go to the address of the client. */
  #allow(headers: CallOptions['headers']): void {
    const { url, allowInsecure } = this.#options;
    if (secretsIn(headers).length > 0)
      serviceAddress('the address of the client', url, { hasKey: true, allowInsecure });
  }

  async #pause(attempt: Attempt, error: Error, delayMs: number): Promise<void> {
    const { signal } = attempt.options;
    this.#tell('onRetry', { ...eventOf(attempt), error, delayMs });
    try {
      await this.#waits.wait(delayMs, signal);
    } catch (thrown) {
      signal?.throwIfAborted();
      throw new ConnectionError(attempt.facts, messageOf(thrown), false);
    }
  }

  async #attempt<Result>(attempt: Attempt, take: Take<Result>): Promise<Result> {
    const { call, options, facts, secrets, body } = attempt;
    const startedMs = monotonicNowMs();
    options.signal?.throwIfAborted();
    if (this.isClosed) throw new ConnectionError(facts, CLOSED, false);
    this.#tell('onRequest', eventOf(attempt));
    const stream = call.stream?.();
    try {
      const answer = await this.#http.open({
        method: call.method,
        path: call.path + queryText(call.query),
        headers: mergedHeaders(ACCEPT_JSON, typeOf(call), this.#options.headers, call.headers, options.headers),
        timeoutMs: Math.max(1, attempt.leftMs()),
        ...(body === undefined ? {} : { body: [body] }),
        ...(stream === undefined ? {} : { stream }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
      const { status } = answer;
      const head: Head = { status, headers: secrets.maskedHeaders(answer.headers) };
      const durationMs = monotonicNowMs() - startedMs;
      this.#tell('onResponse', { ...eventOf(attempt), status, requestId: requestIdOf(head.headers), durationMs });
      if (status >= 200 && status < 300) return await take(attempt, answer, head);
      const text = await read(answer.body, FAILURE_BYTES_MAX, attempt, head, true).catch((thrown) => {
        if (thrown instanceof DeadlineError || this.isClosed || options.signal?.aborted) throw thrown;
        // The connection broke; the status has told what became of the call.
        return '';
      });
      const failed = { ...head, text: secrets.maskedBody(text) };
      throw new FailedAttempt(new ApiError(facts, failed), { kind: 'answer', answer: failed });
    } catch (thrown) {
      options.signal?.throwIfAborted();
      throw failedAttempt(thrown, attempt);
    } finally {
      // By now it has been sent, or never will be; a file is closed by that.
      stream?.stream.destroy();
    }
  }

  #tell<Name extends keyof ClientHooks>(name: Name, event: Parameters<NonNullable<ClientHooks[Name]>>[0]): void {
    const failed = (thrown: unknown): void => {
      const problem = this.#secrets.masked(messageOf(thrown));
      diagnostics.warnOnce(`hook ${name}`, `clients: the hook ${name} threw (${problem}); the call goes on.`);
    };
    try {
      const answer = (this.#options.hooks?.[name] as ((event: unknown) => unknown) | undefined)?.(event);
      // Of one that is async.
      if (types.isPromise(answer)) answer.catch(failed);
    } catch (thrown) {
      failed(thrown);
    }
  }
}

async function read(body: Readable, bytesMax: number, attempt: Attempt, head: Head, mayCut = false): Promise<string> {
  const text = await bodyText(body, bytesMax, attempt.leftMs(), mayCut);
  if (text === undefined) throw new InvalidAnswerError(attempt.facts, head, `is longer than ${bytesMax} bytes`);
  return text;
}

function jsonOf(text: string, attempt: Attempt, head: Head): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    // The error of `JSON.parse` repeats a part of the text.
    throw new InvalidAnswerError(attempt.facts, head, 'is no JSON');
  }
}

/** The body of a call; an InvalidRequestError where JSON cannot hold it. */
function jsonTextOf({ name, body }: Call, secrets: Secrets): string | undefined {
  if (body === undefined) return undefined;
  try {
    return JSON.stringify(body);
  } catch (thrown) {
    // A `toJSON` may throw anything.
    const msg = `Expected what JSON can hold (${secrets.masked(messageOf(thrown))})`;
    throw new InvalidRequestError(name, [{ loc: ['body'], msg, type: 'json_invalid' }]);
  }
}

function typeOf({ body }: Call): Record<string, string> {
  return body === undefined ? {} : { 'content-type': 'application/json' };
}
