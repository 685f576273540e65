import type { Dispatcher } from 'undici';
import { RunspanError } from '../base/errors.ts';
import { DELAY_MAX_MS } from '../base/limits.ts';
import { type Check, type Checks, isLoopback, isObject, TRUE_OR_FALSE, wholeFrom } from '../base/options.ts';
import { shown } from '../base/text.ts';

/** Options that all clients accept. */
export interface ClientOptions {
  /** API key, sent as `X-Api-Key`. Redirects are not followed, so the key is sent only to the client's address. */
  apiKey?: string | undefined;
  /** Headers to send with every request. A header replaces the client's own header of the same name. */
  headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Timeout for a call in milliseconds, including its retries and the response body. For a stream, the timeout applies
   * only until the response headers arrive. After the timeout, the call rejects with a TimeoutError.
   * @default 60_000
   */
  timeoutMs?: number | undefined;
  /** Timeout for opening a connection, in milliseconds. Has no effect in browsers. @default 5_000 */
  connectTimeoutMs?: number | undefined;
  /**
   * Maximum number of retries. A call is retried if no response arrives, or after 408, 429 and 5xx. The delay is
   * `Retry-After` or, without this header, random: up to 0.5 s before the first retry, doubling with each retry up to 8
   * s. A call that creates something is retried only if the connection could not be opened, or after 429.
   * @default 2
   */
  maxRetries?: number | undefined;
  /**
   * Whether API keys may be sent over plain HTTP to another machine.
   * @default false
   */
  allowInsecure?: boolean | undefined;
  /** An undici Dispatcher for sending requests, for example a proxy or a custom pool. Has no effect in browsers. */
  dispatcher?: Dispatcher | undefined;
  /** Functions that are called for each attempt to send a request. */
  hooks?: ClientHooks | undefined;
}

/** Options of one call. They override the client's options. */
export interface CallOptions {
  /** Aborts the call, its retries and its stream. The call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** See `timeoutMs` of the client. */
  timeoutMs?: number | undefined;
  /** See `maxRetries` of the client. */
  maxRetries?: number | undefined;
  /** Headers for this call. A header replaces the client's header with the same name, and `null` removes it. */
  headers?: Readonly<Record<string, string | null>> | undefined;
}

/** Functions that observe a client's requests. An error thrown by a hook is logged and does not affect the call. */
export interface ClientHooks {
  /** Called before an attempt is sent. */
  onRequest?: ((event: RequestEvent) => void) | undefined;
  /** Called when response headers arrive, with any status. */
  onResponse?: ((event: ResponseEvent) => void) | undefined;
  /** Called before the delay that precedes a retry. */
  onRetry?: ((event: RetryEvent) => void) | undefined;
}

/** Describes an attempt to send a request. */
export interface RequestEvent {
  /** Name of the call, for example `deployments.create`. */
  readonly call: string;
  readonly method: string;
  /** The URL without its query. */
  readonly url: string;
  /** Number of the attempt, starting at 1. */
  readonly attempt: number;
}

/** Describes an attempt that received a response. */
export interface ResponseEvent extends RequestEvent {
  readonly status: number;
  /** The service's id for the request. Undefined if the response has none. */
  readonly requestId: string | undefined;
  /** Time until the response headers arrived, in milliseconds. */
  readonly durationMs: number;
}

/** Describes an attempt that failed and will be retried. */
export interface RetryEvent extends RequestEvent {
  /** Why the attempt failed. */
  readonly error: Error;
  readonly delayMs: number;
}

export const ADDRESS: Check = ['an address', (value) => typeof value === 'string' || value instanceof URL];
export const TEXT_OPTION: Check = ['text that is not empty', (value) => typeof value === 'string' && value !== ''];
export const OBJECT_OPTION: Check = ['an object', isObject];
export const TIMEOUT: Check = wholeFrom(1, DELAY_MAX_MS);

export function oneOrMoreOf(words: readonly string[]): Check {
  const isWord = (word: unknown): boolean => typeof word === 'string' && words.includes(word);
  return [`one or a list of ${words.join(', ')}`, (value) => [value].flat().every(isWord)];
}

export const clientChecks: Checks<ClientOptions> = {
  apiKey: ['a text that is not empty, of printable ASCII', isKey, 'secret'],
  headers: entriesCheck('header', 'an object of names and texts that headers can hold', isHeader),
  timeoutMs: TIMEOUT,
  connectTimeoutMs: TIMEOUT,
  maxRetries: wholeFrom(0, 100),
  allowInsecure: TRUE_OR_FALSE,
  dispatcher: ['an undici Dispatcher', (value) => typeof (value as Dispatcher | null)?.dispatch === 'function'],
  hooks: entriesCheck('hook', 'an object of the functions onRequest, onResponse and onRetry', isHook),
};

export const callChecks: Checks<CallOptions> = {
  signal: ['an AbortSignal', (value) => value instanceof AbortSignal],
  timeoutMs: clientChecks.timeoutMs,
  maxRetries: clientChecks.maxRetries,
  headers: entriesCheck(
    'header',
    'an object of names and texts that headers can hold, or null to remove a header',
    (name, text) => isHeader(name, text === null ? '' : text),
  ),
};

/** Returns the options that all calls share, without any others. */
export function callOptionsOf({ signal, timeoutMs, maxRetries, headers }: CallOptions): CallOptions {
  const options = { signal, timeoutMs, maxRetries, headers };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/**
 * Merges headers by lower-case name. A later header replaces an earlier one with the same name, and `null` removes it.
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
 * Parses a service's address. Throws a RunspanError if the value is not an address or contains credentials, a query or
 * a fragment, or if an API key would be sent over plain HTTP to another machine.
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
      `Expected \`${option}\` to be an http or https address, such as https://host/path, got one that ${problem}`,
    );
  }
  if (hasKey && !allowInsecure && url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new RunspanError(
      'RUNSPAN_INVALID_OPTION',
      `Expected \`${option}\` to be an https address: ${secret} is not sent over plain HTTP to another machine unless \`allowInsecure\` is set`,
    );
  }
  return url;
}

/** Parses a pre-signed URL, which may have a query. Errors do not show the URL, because it is a credential. */
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
  /**
   * Names what is not sent over plain HTTP, for example `The API key`. Used in error messages.
   * @default 'a key'
   */
  readonly secret?: string;
}

/** Returns the problem with an address. Omits the address itself, which may contain credentials. */
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
/** Matches headers for the connection and the body length, which only undici may set. */
const RESERVED = /^(?:connection|content-length|expect|keep-alive|transfer-encoding|upgrade)$/i;

function isHeader(name: string, text: unknown): boolean {
  return HEADER_NAME.test(name) && !RESERVED.test(name) && typeof text === 'string' && HEADER_VALUE.test(text);
}

function isHook(name: string, hook: unknown): boolean {
  return ['onRequest', 'onResponse', 'onRetry'].includes(name) && (hook === undefined || typeof hook === 'function');
}

/**
 * Checks each entry of a plain object. Errors name the first invalid entry, without its value. Rejects `Headers` and
 * `Map`, because their entries are not properties.
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
