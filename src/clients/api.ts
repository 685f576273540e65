import type { Readable } from 'node:stream';
import { checkedOptions } from '../base/checked-options.ts';
import { monotonicNowMs, wallNowMs } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { delay } from '../base/timers.ts';
import { HttpClient, type OpenAnswer } from '../http/client.ts';
import { DeadlineError, failureOf } from '../http/failure.ts';
import { environmentProxies } from '../http/proxies.ts';
import {
  ApiError,
  type CallFacts,
  ConnectionError,
  InvalidAnswerError,
  requestIdOf,
  TimeoutError,
} from './api-error.ts';
import { bodyText } from './body-text.ts';
import { type Call, queryText } from './call.ts';
import { type CallOptions, type ClientHooks, type ClientOptions, callChecks } from './client-options.ts';
import { type AttemptFailure, retryDelayMs } from './retry-delay.ts';
import type { Secrets } from './secrets.ts';

/** Bytes of an answer that are read; a longer one is an InvalidAnswerError. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** Bytes of an answer that only says what is wrong. */
const FAILURE_BYTES_MAX = 256 * 1024;

const ACCEPT_JSON = { accept: 'application/json' };

export interface ApiOptions extends Omit<ClientOptions, 'apiKey' | 'allowInsecure'> {
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

/** An attempt to send a call, and what it has to know. */
interface Attempt {
  readonly call: Call;
  readonly options: CallOptions;
  /** Of the whole call. */
  readonly timeoutMs: number;
  readonly leftMs: () => number;
  readonly facts: CallFacts;
  readonly secrets: Secrets;
}

/**
 * The one way by which clients send calls: deadline, retries, errors, hooks. It rejects with an ApiError for any status
 * that is no success, a ConnectionError, a TimeoutError, an InvalidAnswerError, or the reason of the caller's signal.
 */
export class Api {
  readonly #options: ApiOptions;
  readonly #http: HttpClient;
  readonly #timeoutMs: number;

  constructor(options: ApiOptions) {
    const { url, timeoutMs = 60_000, connectTimeoutMs = 5_000, dispatcher } = options;
    this.#options = options;
    this.#timeoutMs = timeoutMs;
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

  /** The address with a path below it. */
  urlOf(path: string): string {
    const { url } = this.#options;
    return url.origin + url.pathname.replace(/\/+$/, '') + path;
  }

  /** The body of an answer, as JSON. What it holds is not checked. */
  async json<Data>(call: Call): Promise<Data> {
    return (await this.answer<Data>(call)).data;
  }

  /** The same with the head of the answer. */
  async answer<Data>(call: Call): Promise<Answer<Data>> {
    return this.#send(call, async (attempt, { status, headers, body }) => {
      const text = await read(body, ANSWER_BYTES_MAX, attempt, { status, headers });
      return { data: jsonOf(text, attempt, { status, headers }) as Data, status, headers };
    });
  }

  /** The answer as soon as its head has come. Its body has no deadline; it fails with the reason of the caller's signal. */
  async open(call: Call): Promise<OpenAnswer> {
    return this.#send(call, async (_, answer) => answer);
  }

  /** Ends what is under way, with a ConnectionError, and closes the connections. */
  async close(): Promise<void> {
    await this.#http.destroy();
  }

  async #send<Result>(call: Call, take: (attempt: Attempt, answer: OpenAnswer) => Promise<Result>): Promise<Result> {
    const options = checkedOptions<CallOptions>(`the options of ${call.name}`, call.options ?? {}, callChecks);
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const untilMs = monotonicNowMs() + timeoutMs;
    const leftMs = (): number => untilMs - monotonicNowMs();
    const retriesMax = call.stream === undefined ? (options.maxRetries ?? this.#options.maxRetries ?? 2) : 0;
    const isIdempotent = call.isIdempotent ?? !['POST', 'PATCH'].includes(call.method);
    const secrets = this.#options.secrets.with(call.secrets);
    for (let attempts = 1; ; attempts++) {
      const facts: CallFacts = { method: call.method, url: secrets.masked(this.urlOf(call.path)), attempts };
      const attempt: Attempt = { call, options, timeoutMs, leftMs, facts, secrets };
      try {
        return await this.#attempt(attempt, take);
      } catch (thrown) {
        if (!(thrown instanceof FailedAttempt)) throw thrown;
        const delayMs = retryDelayMs(thrown.failure, isIdempotent, attempts - 1, Math.random(), wallNowMs());
        if (delayMs === undefined || attempts > retriesMax || delayMs >= leftMs()) throw thrown.error;
        this.#tell('onRetry', { ...eventOf(attempt), error: thrown.error, delayMs });
        await delay(delayMs, options.signal, true);
      }
    }
  }

  async #attempt<Result>(
    attempt: Attempt,
    take: (attempt: Attempt, answer: OpenAnswer) => Promise<Result>,
  ): Promise<Result> {
    const { call, options, facts, secrets } = attempt;
    const startedMs = monotonicNowMs();
    options.signal?.throwIfAborted();
    this.#tell('onRequest', eventOf(attempt));
    try {
      const answer = await this.#http.open({
        method: call.method,
        path: call.path + queryText(call.query),
        headers: headersOf(ACCEPT_JSON, typeOf(call), this.#options.headers, call.headers, options.headers),
        timeoutMs: Math.max(1, attempt.leftMs()),
        ...(call.body === undefined ? {} : { body: [JSON.stringify(call.body)] }),
        ...(call.stream === undefined ? {} : { stream: call.stream }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
      const { status, headers } = answer;
      const durationMs = monotonicNowMs() - startedMs;
      this.#tell('onResponse', { ...eventOf(attempt), status, requestId: requestIdOf(headers), durationMs });
      if (status >= 200 && status < 300) return await take(attempt, answer);
      const text = await read(answer.body, FAILURE_BYTES_MAX, attempt, { status, headers }, true);
      const failed = { status, headers: secrets.maskedHeaders(headers), text: secrets.masked(text) };
      throw new FailedAttempt(new ApiError(facts, failed), { kind: 'answer', answer: failed });
    } catch (thrown) {
      options.signal?.throwIfAborted();
      throw failedAttempt(thrown, attempt);
    }
  }

  #tell<Name extends keyof ClientHooks>(name: Name, event: Parameters<NonNullable<ClientHooks[Name]>>[0]): void {
    try {
      (this.#options.hooks?.[name] as ((event: unknown) => void) | undefined)?.(event);
    } catch (thrown) {
      diagnostics.warnOnce(`hook ${name}`, `clients: the hook ${name} threw (${messageOf(thrown)}); the call goes on.`);
    }
  }
}

/** An attempt that came to nothing: what the caller is told, and what decides on another. */
class FailedAttempt extends Error {
  readonly error: Error;
  readonly failure: AttemptFailure;

  constructor(error: Error, failure: AttemptFailure) {
    super(error.message);
    this.error = error;
    this.failure = failure;
  }
}

function failedAttempt(thrown: unknown, { facts, timeoutMs }: Attempt): unknown {
  if (thrown instanceof FailedAttempt || thrown instanceof InvalidAnswerError) return thrown;
  // By now the time for further attempts is over as well.
  if (thrown instanceof DeadlineError) return new TimeoutError(facts, timeoutMs);
  const { detail, code, isLasting, mayHaveArrived } = failureOf(thrown);
  const error = new ConnectionError(facts, detail, mayHaveArrived);
  return new FailedAttempt(error, { kind: 'no answer', code, isLasting });
}

async function read(
  body: Readable,
  bytesMax: number,
  attempt: Attempt,
  head: { status: number; headers: OpenAnswer['headers'] },
  mayCut = false,
): Promise<string> {
  const text = await bodyText(body, bytesMax, attempt.leftMs(), mayCut);
  if (text === undefined) throw new InvalidAnswerError(attempt.facts, head, `is longer than ${bytesMax} bytes`);
  return text;
}

function jsonOf(text: string, attempt: Attempt, head: { status: number; headers: OpenAnswer['headers'] }): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // The error of `JSON.parse` repeats a part of the text.
    throw new InvalidAnswerError(attempt.facts, head, 'is no JSON');
  }
}

/** Those of the client, the call and its options; the later of one name wins, and null leaves it out. */
function headersOf(
  ...sources: readonly (Readonly<Record<string, string | null>> | undefined)[]
): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of sources.flatMap((source) => Object.entries(source ?? {}))) {
    if (value === null) headers.delete(name.toLowerCase());
    else headers.set(name.toLowerCase(), value);
  }
  return Object.fromEntries(headers);
}

function typeOf({ body }: Call): Record<string, string> {
  return body === undefined ? {} : { 'content-type': 'application/json' };
}

function eventOf({ call, facts }: Attempt): { call: string; method: string; url: string; attempt: number } {
  return { call: call.name, method: facts.method, url: facts.url, attempt: facts.attempts };
}
