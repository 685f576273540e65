import type { Dispatcher } from 'undici';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { type Checks, isObject, wholeFrom } from '../base/options.ts';
import { areHeaders } from './headers.ts';

/** What all clients take. */
export interface ClientOptions {
  /** Sent as `X-Api-Key`, to the address of the client alone: redirects are not followed. */
  apiKey?: string | undefined;
  /** Sent with every request, over those of the client. */
  headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Milliseconds for a call, its retries and the body of its answer included; of a stream, until it begins. After that a
   * call rejects with a TimeoutError.
   *
   * @default 60_000
   */
  timeoutMs?: number | undefined;
  /**
   * Milliseconds to connect.
   *
   * @default 5_000
   */
  connectTimeoutMs?: number | undefined;
  /**
   * How often a call is tried again: after no answer, 408, 429 and 5xx, with `Retry-After`, else after 0.5 s × 2 up to 8 s,
   * with full jitter. A call that makes something is tried again only where it cannot have been taken: there was no
   * connection, or it was answered by 429.
   *
   * @default 2
   */
  maxRetries?: number | undefined;
  /**
   * Whether a key may be sent over plain HTTP to another machine.
   *
   * @default false
   */
  allowInsecure?: boolean | undefined;
  /** An undici Dispatcher that sends the requests, for a proxy or a pool of your own. */
  dispatcher?: Dispatcher | undefined;
  /** Told of each attempt. */
  hooks?: ClientHooks | undefined;
}

/** What a single call takes, over the options of its client. */
export interface CallOptions {
  /** Ends the call, its waits and its stream; the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** As for the client. */
  timeoutMs?: number | undefined;
  /** As for the client. */
  maxRetries?: number | undefined;
  /** Sent with this call, over those of the client; `null` leaves one out. */
  headers?: Readonly<Record<string, string | null>> | undefined;
}

/** Functions that are told of what a client does. What they throw is told in one line and changes nothing. */
export interface ClientHooks {
  /** Before an attempt is sent. */
  onRequest?: ((event: RequestEvent) => void) | undefined;
  /** When the head of an answer has come, whatever its status. */
  onResponse?: ((event: ResponseEvent) => void) | undefined;
  /** Before the wait for another attempt. */
  onRetry?: ((event: RetryEvent) => void) | undefined;
}

/** An attempt. */
export interface RequestEvent {
  /** Of the call, as `deployments.create`. */
  readonly call: string;
  readonly method: string;
  /** Without its query. */
  readonly url: string;
  /** Counts from 1. */
  readonly attempt: number;
}

/** An attempt that was answered. */
export interface ResponseEvent extends RequestEvent {
  readonly status: number;
  /** What the service calls the request, where it says so. */
  readonly requestId: string | undefined;
  /** Until the head of the answer. */
  readonly durationMs: number;
}

/** An attempt that will be made again. */
export interface RetryEvent extends RequestEvent {
  /** Why the attempt failed. */
  readonly error: Error;
  readonly delayMs: number;
}

/** What the options that all clients take have to be. */
export const clientChecks: Checks<ClientOptions> = {
  apiKey: ['a text that is not empty, of printable ASCII', isHeaderText, 'secret'],
  headers: ['an object of names and texts that headers can hold', (value) => areHeaders(value, false)],
  timeoutMs: wholeFrom(1, DELAY_MAX_MS),
  connectTimeoutMs: wholeFrom(1, DELAY_MAX_MS),
  maxRetries: wholeFrom(0, 100),
  allowInsecure: ['true or false', (value) => typeof value === 'boolean'],
  dispatcher: ['an undici Dispatcher', (value) => typeof (value as Dispatcher | null)?.dispatch === 'function'],
  hooks: ['an object of functions', isHooks],
};

/** What the options of a call have to be. */
export const callChecks: Checks<CallOptions> = {
  signal: ['an AbortSignal', (value) => value instanceof AbortSignal],
  timeoutMs: clientChecks.timeoutMs,
  maxRetries: clientChecks.maxRetries,
  headers: [
    'an object of names and texts that headers can hold, or null to leave one out',
    (value) => areHeaders(value, true),
  ],
};

/** What is a call's of options that hold more. */
export function callOptionsOf({ signal, timeoutMs, maxRetries, headers }: CallOptions): CallOptions {
  const options = { signal, timeoutMs, maxRetries, headers };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Whether a value is fit for a header that carries a key. */
export function isHeaderText(value: unknown): boolean {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value.trim());
}

function isHooks(value: unknown): boolean {
  const names = ['onRequest', 'onResponse', 'onRetry'];
  return (
    isObject(value) &&
    Object.entries(value).every(
      ([name, hook]) => names.includes(name) && (hook === undefined || typeof hook === 'function'),
    )
  );
}
