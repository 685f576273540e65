import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { ConnectionOptions } from './connections.ts';
import { DeadlineError, SetupError } from './errors.ts';

/** Maximum bytes of a response body that `send` reads. */
export const ANSWER_BYTES_MAX: number = 64 * 1024;

export type HttpHeaders = Readonly<Record<string, string>>;

export type HeadersFunction = (progress: Progress) => Promise<HttpHeaders>;

export interface Progress {
  /** Name of the option whose function is running, for example `apiKey`, or undefined if no function is running. */
  waitsFor: string | undefined;
}

/** Maximum time to read a response body that is not needed. The body is read so that the connection can be reused. */
export const UNNEEDED_BODY_MS: number = 1_000;

/** Options of a client. The path of each request is appended to the path of `endpoint`. */
export interface HttpClientOptions extends ConnectionOptions {
  /**
   * Headers of every request. Only `endpoint` receives the headers, because redirects are not followed. A function is
   * called for each request, and its running time counts towards the deadline of the request. If the function throws,
   * the request fails.
   */
  readonly headers: HttpHeaders | HeadersFunction;
  /** If a dispatcher is set, the connection pool of the client is not used, and proxy settings have no effect. */
  readonly dispatcher?: Dispatcher | undefined;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** A path that starts with a slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: readonly (string | Uint8Array)[];
  /**
   * A stream that is sent as the body, instead of `body`. Only `open` accepts a stream, because `send` may repeat a
   * request.
   */
  readonly stream?: StreamBody;
  readonly signal?: AbortSignal;
  /** Whether only the status is needed. If true, the `text` of the response is empty. */
  readonly needsStatusOnly?: boolean;
  /** Timeout of this request. @default `requestTimeoutMs` */
  readonly timeoutMs?: number;
}

export interface StreamBody {
  readonly stream: Readable;
  readonly bytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Headers by name in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The first 64 KiB of the body. */
  readonly text: string;
  /** Whether the request was sent without an API key and without an `authorization` header. */
  readonly isKeyless?: boolean;
}

/** A response whose body has not been read. */
export interface OpenAnswer {
  readonly status: number;
  readonly headers: HttpAnswer['headers'];
  /** The caller must read the body to the end or call `destroy`. */
  readonly body: ResponseBody;
}

/** The chunks of a response body, which can be read only once. Breaking out of the iteration closes the connection. */
export interface ResponseBody extends AsyncIterable<Uint8Array> {
  /** Closes the connection. A pending read rejects with the error. */
  destroy(error?: Error): void;
}

/**
 * Sends requests to one endpoint. A request resolves with any response status, and rejects if no response arrives before
 * the deadline. Requests are not traced. `client.ts` implements the interface with undici, `fetch-client.ts` with
 * `fetch`.
 */
export interface Transport {
  /** Sends a request and reads at most 64 KiB of the response body. May send the request again. */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Sends a request once and resolves when the response headers arrive. The deadline does not include the body. */
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
