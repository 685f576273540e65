import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { ignoreErrors } from '../base/guard.ts';
import { shownAddress } from '../config/checker.ts';
import { nodeModule } from '../platform/node.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { type Attempt, BaseClient } from './base-client.ts';
import { createConnections, isReusedConnectionError, isWriting } from './connections.ts';
import {
  bodyBytes,
  type HttpClientOptions,
  type HttpHeaders,
  type HttpRequest,
  type HttpResponse,
  RESPONSE_BYTES_MAX,
  type UnreadResponse,
} from './transport.ts';

/** Sends requests with undici, and loads undici for the first request. */
export class HttpClient extends BaseClient {
  readonly #origin: string;
  readonly #basePath: string;
  #pool: Promise<Dispatcher> | undefined;

  constructor(options: HttpClientOptions) {
    super(options);
    this.#origin = options.endpoint.origin;
    this.#basePath = shownAddress(options.endpoint).slice(this.#origin.length);
  }

  isWriting(): boolean {
    // A dispatcher of the application may keep bodies.
    return this.options.dispatcher !== undefined || isWriting();
  }

  /** Closes all connections. A dispatcher from the `dispatcher` option stays open. */
  override async destroy(): Promise<void> {
    await super.destroy();
    const pool = await this.#pool?.catch(() => undefined);
    await pool?.destroy();
  }

  protected override async exchange(own: HttpHeaders, request: HttpRequest, attempt: Attempt): Promise<UnreadResponse> {
    const dispatcher = this.options.dispatcher ?? (await (this.#pool ?? this.#connect()));
    // undici would open a connection before checking the signal.
    attempt.signal.throwIfAborted();
    const options = {
      origin: this.#origin,
      path: this.#basePath + request.path || '/',
      method: request.method,
      headers: { ...own, ...request.headers, ...lengthOf(request) },
      body: bodyOf(request),
      // The deadline of the attempt replaces the timeouts of undici.
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: attempt.signal,
      // Forbids redirects, because a custom dispatcher could send the API key to another origin.
      maxRedirections: 0,
    } as unknown as Dispatcher.RequestOptions;
    const { statusCode, headers, body } = await withoutTracing(() => dispatcher.request(options));
    body.once('close', () => attempt.end());
    // Prevents an uncaught exception if the body fails. Readers still receive the error.
    body.on('error', () => {});
    return { status: statusCode, headers, body };
  }

  /** If the service closed an idle connection, the request is sent on another connection. */
  protected override isRepeated(error: unknown): boolean {
    return isReusedConnectionError(error);
  }

  /** A request without `accept-encoding` allows any coding (RFC 9110, 12.5.3). */
  protected override decoded(bytes: Uint8Array, headers: HttpResponse['headers']): Uint8Array {
    if (!/^(?:x-)?gzip$/i.test(String(headers['content-encoding']))) return bytes;
    const { constants, gunzipSync } = nodeModule('node:zlib');
    const limits = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: RESPONSE_BYTES_MAX };
    return ignoreErrors(() => gunzipSync(bytes, limits)) ?? new Uint8Array();
  }

  #connect(): Promise<Dispatcher> {
    this.#pool = withoutTracing(() => createConnections(this.options));
    this.#pool.catch(() => {
      this.#pool = undefined;
    });
    return this.#pool;
  }
}

function bodyOf({ body, stream }: HttpRequest): string | Uint8Array | Readable | null {
  if (stream !== undefined) return stream.stream;
  return body === undefined || body.length <= 1 ? (body?.[0] ?? null) : nodeModule('node:stream').Readable.from(body);
}

function lengthOf({ body, stream }: HttpRequest): Record<string, string> {
  if (body === undefined && stream === undefined) return {};
  return { 'content-length': String(stream?.bytes ?? bodyBytes(body)) };
}
