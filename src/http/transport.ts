import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { ConnectionOptions } from './connections.ts';
import { DeadlineError, SetupError } from './errors.ts';

/** Maximum number of bytes that `send` reads from a response body. */
export const RESPONSE_BYTES_MAX: number = 64 * 1024;

export type HttpHeaders = Readonly<Record<string, string>>;

export type HeadersFunction = (progress: Progress) => Promise<HttpHeaders>;

export interface Progress {
  /** Name of the option whose function is being called, for example `apiKey`. Undefined if none is. */
  waitsFor: string | undefined;
}

/** Client options. The path of each request is appended to the path of `endpoint`. */
export interface HttpClientOptions extends ConnectionOptions {
  /**
   * Headers for every request. Only `endpoint` receives these headers, because redirects are not followed. If `headers`
   * is a function, it is called for each request. The time of the function call counts towards the request's deadline.
   * If the function throws, the request fails.
   */
  readonly headers: HttpHeaders | HeadersFunction;
  /** undici dispatcher to use instead of a connection pool. If set, proxy settings have no effect. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Function to use instead of undici and the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** Request path, starting with a slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: readonly (string | Uint8Array)[];
  /** Stream to send instead of `body`. Only `open` accepts a stream, because `send` may retry the request. */
  readonly stream?: StreamBody;
  readonly signal?: AbortSignal;
  /** Set to `true` if the status code alone decides. `bytes` is then empty if the body is cut off or takes over a second. */
  readonly isBodyOptional?: boolean;
  /**
   * Timeout for this request, in milliseconds.
   * @default `requestTimeoutMs`
   */
  readonly timeoutMs?: number;
}

export interface StreamBody {
  readonly stream: Readable;
  readonly bytes: number;
}

export interface HttpResponse {
  readonly status: number;
  /** Response headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The first 64 KiB of the response body. */
  readonly bytes: Uint8Array;
  readonly text: string;
  /** Whether the request was sent without an API key or `authorization` header. */
  readonly isKeyless?: boolean;
  /** Whether the connection of an earlier try of this request broke, so that the service may have handled it. */
  readonly isRepeated?: boolean;
}

export interface UnreadResponse {
  readonly status: number;
  readonly headers: HttpResponse['headers'];
  /** Response body. The caller must read the body to its end or call `destroy`. */
  readonly body: ResponseBody;
}

/** The chunks of a response body. Can be read only once. Leaving the loop early closes the connection. */
export interface ResponseBody extends AsyncIterable<Uint8Array> {
  /** Closes the connection. Pending reads reject with `error`. */
  destroy(error?: Error): void;
}

/**
 * Sends requests to one endpoint. A request resolves for every status code, and rejects if no response arrives before
 * the deadline. Requests are not traced.
 */
export interface Transport {
  /** Sends a request and reads up to 64 KiB of the response body. May retry the request. */
  send(request: HttpRequest): Promise<HttpResponse>;
  /** Sends a request once, and resolves when the response headers arrive. The deadline does not apply to the body. */
  open(request: HttpRequest): Promise<UnreadResponse>;
  setHeaders(headers: HttpClientOptions['headers']): void;
  /** Whether a connection may still read the body of an answered request. Undefined if that cannot be known. */
  isWriting?(): boolean;
  /** Aborts all requests, if requests keep the process alive. */
  abort?(): void;
  destroy(): Promise<void>;
}

/** Whether the request had no API key and no `authorization` header. */
export function isKeyless(headers: HttpHeaders): boolean {
  return headers['x-api-key'] === undefined && headers.authorization === undefined;
}

/** Whether a service responds with this status to a missing or wrong API key. */
export function isKeyRefused(status: number): boolean {
  return status === 401 || status === 403;
}

export function bodyBytes(chunks: HttpRequest['body'] = []): number {
  let bytes = 0;
  for (const chunk of chunks) bytes += Buffer.byteLength(chunk);
  return bytes;
}

export function requestTimeout({ waitsFor }: Progress, timeoutMs: number): Error {
  return waitsFor === undefined
    ? new DeadlineError(`no response within ${timeoutMs} ms`)
    : new SetupError(`\`${waitsFor}\` did not return within ${timeoutMs} ms`);
}
