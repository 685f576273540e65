import { ownRequests } from '../base/own-requests.ts';
import { shownAddress } from '../config/checker.ts';
import { nodeModule } from '../platform/node.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { type Attempt, BaseClient } from './base-client.ts';
import { NoResponseError, SetupError } from './errors.ts';
import type { HttpClientOptions, HttpHeaders, HttpRequest, ResponseBody, UnreadResponse } from './transport.ts';

/** Sends requests with `fetch`. The runtime manages connections, so connection and proxy options have no effect. */
export class FetchClient extends BaseClient {
  readonly #address: string;

  constructor(options: HttpClientOptions) {
    super(options);
    this.#address = shownAddress(options.endpoint);
  }

  abort(): void {
    this.abortAll('the process ends');
  }

  protected override async exchange(own: HttpHeaders, request: HttpRequest, attempt: Attempt): Promise<UnreadResponse> {
    const { method, path, headers } = request;
    const { signal } = attempt;
    const init = {
      method,
      headers: { ...own, ...headers },
      ...bodyOf(request),
      // Redirects are not followed, because another origin could receive the API key.
      redirect: 'manual',
      signal,
      // On Cloudflare Workers with an early compatibility date, `fetch` throws if `cache` is set.
      ...(method === 'GET' && 'cache' in Request.prototype && { cache: 'no-store' }),
    } as RequestInit;
    ownRequests.add(init);
    const send = this.options.fetch ?? fetch;
    let response: Response;
    try {
      // The application's function may not be async: it may return a response, or throw.
      response = await withoutTracing(() => send(this.#address + path, init));
    } catch (thrown) {
      throw causeOf(thrown, signal);
    }
    // In browsers, a redirect has the response type `opaqueredirect`, and its status is hidden.
    if (response.type === 'opaqueredirect')
      throw new SetupError('the service redirects to another URL; set the URL of the service itself');
    const { status, headers: received, body } = response;
    return { status, headers: Object.fromEntries(received), body: bodyFrom(body, attempt) };
  }
}

function bodyOf({ body = [], stream }: HttpRequest): Pick<RequestInit, 'body' | 'duplex'> {
  if (stream !== undefined) return { body: nodeModule('node:stream').Readable.toWeb(stream.stream), duplex: 'half' };
  // Creating a `Blob` copies the parts, so a single part is passed as it is.
  return { body: body.length > 1 ? new Blob(body as string[]) : (body[0] ?? null) };
}

function bodyFrom(stream: ReadableStream<Uint8Array> | null, attempt: Attempt): ResponseBody {
  const destroy = (error = new NoResponseError('the response was closed') as Error): void => {
    attempt.end();
    attempt.abort(error);
  };
  return {
    destroy,
    async *[Symbol.asyncIterator]() {
      const reader = stream?.getReader();
      try {
        for (;;) {
          const step = await reader?.read();
          if (step?.value === undefined) return;
          yield step.value;
        }
      } catch (thrown) {
        throw causeOf(thrown, attempt.signal);
      } finally {
        attempt.end();
        void reader?.cancel().catch(() => {});
      }
    },
  };
}

/**
 * Returns the cause of a failed `fetch`. On Bun, the `TypeError` itself has an error code. On Deno, the problem is
 * named only in the message of the `cause`. In browsers, the `TypeError` has no `cause`.
 */
function causeOf(thrown: unknown, { aborted, reason }: AbortSignal): unknown {
  if (aborted) return reason;
  if (!(thrown instanceof TypeError) || 'code' in thrown) return thrown;
  const { cause } = thrown;
  if (cause instanceof Error && !('code' in cause)) {
    if (cause.message.includes('Connection refused')) return Object.assign(cause, { code: 'ECONNREFUSED' });
    if (cause.message.includes('dns error')) return Object.assign(cause, { code: 'ENOTFOUND' });
  }
  return cause ?? new NoResponseError('no response arrived, or the connection broke');
}
