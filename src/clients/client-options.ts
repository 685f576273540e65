import type { Dispatcher } from 'undici';
import { RunspanError } from '../base/errors.ts';
import { shown } from '../base/text.ts';
import { type Check, type Checks, isLoopback, isObject, TRUE_OR_FALSE, wholeFrom } from '../config/checker.ts';
import { defined } from '../payload/fields.ts';
import { DELAY_MAX_MS } from '../platform/timers.ts';

/** Options shared by all clients. */
export interface ClientOptions {
  /**
   * API key, sent as `X-Api-Key`. The client does not follow redirects, so it sends the key only to the service's base
   * URL.
   */
  apiKey?: string | undefined;
  /** Headers to send with every request. Custom headers replace the client's own headers of the same name. */
  headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Timeout for a call in milliseconds, including retries and the response body. For a stream, the timeout covers only
   * the wait for response headers. After the timeout, the call rejects with a TimeoutError.
   * @default 60_000
   */
  timeoutMs?: number | undefined;
  /** Timeout for opening a connection, in milliseconds. This option has no effect in browsers. @default 5_000 */
  connectTimeoutMs?: number | undefined;
  /**
   * Maximum number of retries per call. A call is retried if no response arrives, or after status 408, 429 or 5xx. The
   * delay is the value of the `Retry-After` header. Without this header, the delay is random: up to 0.5 s before the
   * first retry, then doubling up to 8 s. A call that creates a resource is retried only if the connection could not be
   * opened, or after status 429.
   * @default 2
   */
  maxRetries?: number | undefined;
  /** Whether API keys may be sent over plain HTTP to another machine. @default false */
  allowInsecure?: boolean | undefined;
  /**
   * undici Dispatcher that sends the requests, for example a `ProxyAgent` or a custom pool. This option has no effect
   * in browsers.
   */
  dispatcher?: Dispatcher | undefined;
  /** Functions to call for each attempt to send a request. */
  hooks?: ClientHooks | undefined;
}

/** Options for a single call, which override the client's options. */
export interface CallOptions {
  /**
   * Signal that aborts the call, including retries and the stream. An aborted call rejects with the signal's reason.
   */
  signal?: AbortSignal | undefined;
  /** Overrides the client's `timeoutMs` for this call. */
  timeoutMs?: number | undefined;
  /** Overrides the client's `maxRetries` for this call. */
  maxRetries?: number | undefined;
  /**
   * Headers for this call, which replace the client's headers of the same name. Set a header to `null` to remove it.
   */
  headers?: Readonly<Record<string, string | null>> | undefined;
}

/** Functions that observe a client's requests. An error thrown by a hook is logged and does not affect the call. */
export interface ClientHooks {
  /** Called before each attempt. */
  onRequest?: ((event: RequestEvent) => void) | undefined;
  /** Called when response headers arrive, for any status code. */
  onResponse?: ((event: ResponseEvent) => void) | undefined;
  /** Called before the delay of each retry. */
  onRetry?: ((event: RetryEvent) => void) | undefined;
}

/** Describes an attempt to send a request. */
export interface RequestEvent {
  /** Name of the call, for example `deployments.create`. */
  readonly call: string;
  readonly method: string;
  /** Request URL without the query string. */
  readonly url: string;
  /** Number of the attempt, starting at 1. */
  readonly attempt: number;
}

/** Describes an attempt that received a response. */
export interface ResponseEvent extends RequestEvent {
  readonly status: number;
  /** Request id from the response header `x-request-id`, if the service sends one. */
  readonly requestId: string | undefined;
  /** Time until the response headers arrived, in milliseconds. */
  readonly durationMs: number;
}

/** Describes a failed attempt that will be retried. */
export interface RetryEvent extends RequestEvent {
  /** Why the attempt failed. */
  readonly error: Error;
  readonly delayMs: number;
}

export const ADDRESS: Check = ['a URL', (value) => typeof value === 'string' || value instanceof URL];
export const TEXT_OPTION: Check = ['a non-empty string', (value) => typeof value === 'string' && value !== ''];
export const OBJECT_OPTION: Check = ['an object', isObject];
export const TIMEOUT: Check = wholeFrom(1, DELAY_MAX_MS);

export function oneOrMoreOf(words: readonly string[]): Check {
  const isWord = (word: unknown): boolean => typeof word === 'string' && words.includes(word);
  return [`one or more of ${words.join(', ')}`, (value) => [value].flat().every(isWord)];
}

export const clientChecks: Checks<ClientOptions> = {
  apiKey: ['a non-empty string of printable ASCII characters', isKey, 'secret'],
  headers: entriesCheck('header', 'an object of valid header names and values', isHeader),
  timeoutMs: TIMEOUT,
  connectTimeoutMs: TIMEOUT,
  maxRetries: wholeFrom(0, 100),
  allowInsecure: TRUE_OR_FALSE,
  dispatcher: ['an undici Dispatcher', (value) => typeof (value as Dispatcher | null)?.dispatch === 'function'],
  hooks: entriesCheck('hook', 'an object with the functions onRequest, onResponse and onRetry', isHook),
};

export const callChecks: Checks<CallOptions> = {
  signal: ['an AbortSignal', (value) => value instanceof AbortSignal],
  timeoutMs: clientChecks.timeoutMs,
  maxRetries: clientChecks.maxRetries,
  headers: entriesCheck(
    'header',
    'an object of valid header names and values, or null to remove a header',
    (name, text) => isHeader(name, text === null ? '' : text),
  ),
};

/** Returns only the options that all calls share. */
export function callOptionsOf({ signal, timeoutMs, maxRetries, headers }: CallOptions): CallOptions {
  return defined({ signal, timeoutMs, maxRetries, headers });
}

/**
 * Merges headers by lower-case name. Later headers replace earlier headers of the same name. The value `null` removes a
 * header.
 */
export function mergedHeaders(...sources: readonly (CallOptions['headers'] | undefined)[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of sources.flatMap((source) => Object.entries(source ?? {}))) {
    if (value === null) headers.delete(name.toLowerCase());
    else headers.set(name.toLowerCase(), value);
  }
  return Object.fromEntries(headers);
}

/**
 * Parses a service's base URL. Throws a RunspanError if the URL is invalid or contains credentials, a query or a
 * fragment. Also throws if an API key would be sent over plain HTTP to another machine.
 */
export function serviceAddress(
  option: string,
  given: unknown,
  { hasKey, allowInsecure = false, secret = 'a key' }: AddressRules,
): URL {
  const url =
    given instanceof URL ? given : typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined;
  const problem = given === undefined ? 'is missing' : addressProblem(url);
  if (problem !== undefined || url === undefined) {
    throw new RunspanError(
      'RUNSPAN_INVALID_OPTION',
      `Expected \`${option}\` to be an http or https URL, such as https://host/path, got one that ${problem}`,
    );
  }
  if (hasKey && !allowInsecure && url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new RunspanError(
      'RUNSPAN_INVALID_OPTION',
      `Expected \`${option}\` to be an https URL: ${secret} is not sent over plain HTTP to another machine unless \`allowInsecure\` is set`,
    );
  }
  return url;
}

/**
 * Parses a pre-signed URL, which may have a query. Error messages never contain the URL, because it is a credential.
 */
export function preSignedUrl(option: string, given: unknown, allowInsecure: boolean | undefined): URL {
  const url = URL.canParse(String(given)) ? new URL(String(given)) : undefined;
  const hasUser = url !== undefined && `${url.username}${url.password}` !== '';
  const rules = { hasKey: true, allowInsecure, secret: 'the URL is a credential and' };
  if (url === undefined || hasUser) return serviceAddress(option, url ?? given, rules);
  serviceAddress(option, `${url.origin}${url.pathname}`, rules);
  return url;
}

interface AddressRules {
  readonly hasKey: boolean;
  readonly allowInsecure: boolean | undefined;
  /** Name of the secret in error messages about plain HTTP. @default 'a key' */
  readonly secret?: string;
}

/** Returns the problem with a base URL. The result does not contain the URL, which may include credentials. */
function addressProblem(url: URL | undefined): string | undefined {
  if (url === undefined) return 'cannot be parsed';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'has another protocol';
  if (url.username !== '' || url.password !== '') return 'contains a user or password';
  return url.search === '' && url.hash === '' ? undefined : 'has a query or fragment';
}

function isKey(value: unknown): boolean {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value.trim());
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** Matches header values that undici can send. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Matches connection and body-length headers, which only undici may set. */
const RESERVED = /^(?:connection|content-length|expect|keep-alive|transfer-encoding|upgrade)$/i;

function isHeader(name: string, text: unknown): boolean {
  return HEADER_NAME.test(name) && !RESERVED.test(name) && typeof text === 'string' && HEADER_VALUE.test(text);
}

function isHook(name: string, hook: unknown): boolean {
  return ['onRequest', 'onResponse', 'onRetry'].includes(name) && (hook === undefined || typeof hook === 'function');
}

/**
 * Checks each entry of a plain object. The error names the first invalid entry, but not the entry's value. `Headers`
 * and `Map` objects are rejected, because their entries are not properties.
 */
function entriesCheck(kind: string, expected: string, isValid: (name: string, value: unknown) => boolean): Check {
  const invalidName = (given: object): string | undefined =>
    Object.entries(given).find(([name, value]) => !isValid(name, value))?.[0];
  const isPlain = (given: unknown): given is object => isObject(given) && !(Symbol.iterator in given);
  return [
    expected,
    (given) => isPlain(given) && invalidName(given) === undefined,
    (given) => (isPlain(given) ? `the ${kind} ${shown(invalidName(given))}` : shown(given)),
  ];
}
