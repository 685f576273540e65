import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { ConnectionOptions } from './connections.ts';
import { DeadlineError, SetupError } from './errors.ts';

/** Maximum number of response body bytes that `send` reads. */
export const ANSWER_BYTES_MAX: number = 64 * 1024;

export type HttpHeaders = Readonly<Record<string, string>>;

export type HeadersFunction = (progress: Progress) => Promise<HttpHeaders>;

export interface Progress {
  /** Name of the option whose function is running, for example `apiKey`. Undefined if no function is running. */
  waitsFor: string | undefined;
}

/** Maximum time to read a response body that is only read so that the connection can be reused. */
export const UNNEEDED_BODY_MS: number = 1_000;

/** Client options. Each request's path is appended to the path of `endpoint`. */
export interface HttpClientOptions extends ConnectionOptions {
  /**
   * Headers sent with every request. Only `endpoint` receives these headers, because redirects are not followed. A
   * function is called for each request, and its running time counts towards the request's deadline. If the function
   * throws, the request fails.
   */
  readonly headers: HttpHeaders | HeadersFunction;
  /** The undici dispatcher to use instead of the client's connection pool. Proxy settings then have no effect. */
  readonly dispatcher?: Dispatcher | undefined;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** A path that starts with a slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: readonly (string | Uint8Array)[];
  /** A stream to send instead of `body`. Only `open` accepts a stream, because `send` may repeat a request. */
  readonly stream?: StreamBody;
  readonly signal?: AbortSignal;
  /** Whether only the status is needed. If true, the response's `text` is empty. */
  readonly needsStatusOnly?: boolean;
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

export interface HttpAnswer {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The first 64 KiB of the response body. */
  readonly text: string;
  /** Whether the request was sent without an API key or `authorization` header. */
  readonly isKeyless?: boolean;
}

/** A response whose body has not been read. */
export interface OpenAnswer {
  readonly status: number;
  readonly headers: HttpAnswer['headers'];
  /** The caller must read the body to its end or call `destroy`. */
  readonly body: ResponseBody;
}

/** The chunks of a response body, which can be read only once. Breaking out of the iteration closes the connection. */
export interface ResponseBody extends AsyncIterable<Uint8Array> {
  /** Closes the connection. A pending read rejects with the error. */
  destroy(error?: Error): void;
}

/**
 * Sends requests to one endpoint. A request resolves with any response status, and rejects if no response arrives
 * before the deadline. Requests are not traced. `client.ts` uses undici, and `fetch-client.ts` uses `fetch`.
 */
export interface Transport {
  /** Sends a request and reads up to 64 KiB of the response body. May send the request again. */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /**
   * Sends a request once and resolves when the response headers arrive. Reading the body is not part of the deadline.
   */
  open(request: HttpRequest): Promise<OpenAnswer>;
  setHeaders(headers: HttpClientOptions['headers']): void;
  destroy(): Promise<void>;
}

export const CLOSED: string = 'the client was closed';

export function bodyBytes(chunks: HttpRequest['body'] = []): number {
  let bytes = 0;
  for (const chunk of chunks) bytes += Buffer.byteLength(chunk);
  return bytes;
}

export function timeoutError({ waitsFor }: Progress, timeoutMs: number): Error {
  return waitsFor === undefined
    ? new DeadlineError(`no answer within ${timeoutMs} ms`)
    : new SetupError(`\`${waitsFor}\` did not return within ${timeoutMs} ms`);
}
