import * as v from 'valibot';
import { type Checks, isObject, TRUE_OR_FALSE } from '../../config/checker.ts';
import type { Run } from '../../run/run.ts';
import { type Api, type ApiResponse, serviceApi } from '../api.ts';
import type { BodySchema } from '../body.ts';
import { ADDRESS, type ClientOptions, clientChecks, mergedHeaders, TIMEOUT } from '../client-options.ts';
import { type Arguments, type Endpoint, type PreparedCall, preparedCall } from '../endpoint.ts';
import { type PageList, pagesFrom } from '../page.ts';
import { BODY, both, whole } from '../schema.ts';
import { tracedCall, traceHeaders } from '../tracing.ts';

/** Options of `AgentServer`. */
export interface AgentServerOptions extends ClientOptions {
  /** Base URL of the deployment, including any path. */
  url: string | URL;
  /**
   * Maximum time to wait for more data from a stream or a pending response, in milliseconds. For streams with
   * heartbeats, the maximum is 60 seconds.
   * @default 300_000
   */
  idleTimeoutMs?: number | undefined;
  /** Whether calls that create runs send trace headers, which add the server's runs to your trace. @default true */
  propagate?: boolean | undefined;
}

export const agentServerChecks: Checks<AgentServerOptions> = {
  ...clientChecks,
  url: ADDRESS,
  idleTimeoutMs: TIMEOUT,
  propagate: TRUE_OR_FALSE,
};

/** Page size and offset of a list request. */
export interface PageRequest {
  /** Number of items per page, from 1 to 1000. @default 10 */
  limit?: number;
  /** Number of items to skip. @default 0 */
  offset?: number;
}

const PAGE_ITEMS = 10;

/**
 * Schema for the body or query of a list request. Only `limit` and `offset` are validated, because the client uses them
 * to request the next page.
 */
export const PAGE_BODY: BodySchema = v.pipe(
  BODY,
  v.looseObject({ limit: v.optional(whole(1, 1_000)), offset: v.optional(whole(0)) }),
);

export class AgentService {
  readonly api: Api;
  readonly idleTimeoutMs: number;
  /** Timeout for response headers that arrive only when the run ends, in milliseconds. */
  readonly headTimeoutMs: number;
  readonly #options: Partial<AgentServerOptions>;

  constructor(options: Partial<AgentServerOptions>) {
    const { url, idleTimeoutMs = 300_000, propagate: _, ...client } = options;
    this.api = serviceApi({ option: 'url', url, credentials: { 'x-api-key': client.apiKey } }, client);
    this.idleTimeoutMs = idleTimeoutMs;
    this.headTimeoutMs = client.timeoutMs ?? idleTimeoutMs;
    this.#options = options;
  }

  async call<Result>(endpoint: Endpoint, args: Arguments): Promise<Result> {
    const call = preparedCall(endpoint, args);
    const send = async (headers: Record<string, string>): Promise<Result> =>
      (await this.api.send<Result>({ ...call, headers })).data;
    return endpoint.makesRun ? this.traced(call, send) : send({});
  }

  /** Lists items page by page. The offset is sent in the body of a POST request or in the query of a GET request. */
  list<Item>(endpoint: Endpoint, args: Arguments): PageList<Item> {
    const part = endpoint.method === 'GET' ? 'query' : 'body';
    const first = (): { call: PreparedCall; limit: number; offset: number } => {
      const call = preparedCall(
        { ...endpoint, body: both(endpoint.body ?? BODY, PAGE_BODY), isIdempotent: true },
        args,
      );
      const { limit = PAGE_ITEMS, offset = 0 } = call[part] as PageRequest;
      return { call, limit, offset };
    };
    return pagesFrom(first, async ({ call, limit, offset }) => {
      const response = await this.api.send<unknown>({ ...call, [part]: { ...(call[part] as object), limit, offset } });
      const { data } = response;
      // Some servers return a plain array instead of an object with the field `listField`.
      const { listField } = endpoint;
      const items = isObject(data) && listField !== undefined ? data[listField] : data;
      if (!Array.isArray(items)) throw this.api.invalidResponse(call, response, 'has no list');
      const next = nextOffset(response.headers, offset + items.length, items.length >= limit);
      // Stop if the next offset does not advance, to avoid requesting the same page forever.
      const isLast = next === undefined || next <= offset;
      return { items, next: isLast ? undefined : { call, limit, offset: next } };
    });
  }

  /** Records the call as a child of the current run, if there is one. */
  traced<Result>(
    { name, ids, body }: PreparedCall,
    send: (headers: Record<string, string>, run: Run | undefined) => Promise<Result>,
  ): Promise<Result> {
    const inputs = (): Record<string, unknown> => recordedInputs(ids, body);
    return tracedCall({ name, runType: 'chain', inputs }, (run) => send(this.traceHeaders(), run));
  }

  /** Returns a `fetch` that adds this client's headers, and those of the current run, to requests to the server. */
  get fetch(): typeof fetch {
    const { origin } = new URL(this.api.urlOf(''));
    return (input, init) => {
      const request = input instanceof Request ? input : undefined;
      // To log in, an MCP client also sends requests to other servers.
      if (new URL(request?.url ?? input.toString()).origin !== origin) return fetch(input, init);
      const given = Object.fromEntries(new Headers(init?.headers ?? request?.headers));
      const headers = mergedHeaders(this.api.headers, this.traceHeaders(), given);
      return fetch(input, { redirect: 'manual', ...init, headers });
    };
  }

  /** Returns the trace headers of the current run, or no headers if `propagate` is false. */
  traceHeaders(): Record<string, string> {
    return this.#options.propagate === false ? {} : traceHeaders(this.#options.headers ?? {});
  }
}

export function recordedInputs(ids: PreparedCall['ids'], body: unknown): Record<string, unknown> {
  return Array.isArray(body) ? { ...ids, runs: body } : { ...ids, ...(body as object) };
}

/**
 * Returns the offset of the next page. Without a pagination header, a full page means that another page follows, unless
 * the total has been reached.
 */
function nextOffset(headers: ApiResponse<unknown>['headers'], end: number, isFull: boolean): number | undefined {
  const next = numberOf(headers['x-pagination-next']);
  if (next !== undefined || !isFull) return next;
  const total = numberOf(headers['x-pagination-total']);
  return total === undefined || total > end ? end : undefined;
}

function numberOf(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}
