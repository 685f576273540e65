import * as v from 'valibot';
import { type Checks, isObject, TRUE_OR_FALSE } from '../../base/options.ts';
import type { Run } from '../../run/run.ts';
import { type Answer, type Api, serviceApi } from '../api.ts';
import type { BodySchema } from '../body.ts';
import { ADDRESS, type ClientOptions, clientChecks, TIMEOUT } from '../client-options.ts';
import { type Arguments, callOf, type Endpoint, type PreparedCall } from '../endpoint.ts';
import { type PageList, pagesFrom } from '../page.ts';
import { BODY, both, whole } from '../schema.ts';
import { tracedCall, traceHeaders } from '../tracing.ts';

/** Options of `AgentServer`. */
export interface AgentServerOptions extends ClientOptions {
  /** The deployment's address, including its path if there is one. */
  url: string | URL;
  /**
   * Maximum time without data before a stream or an awaited response counts as broken, in milliseconds. Once the server
   * has sent heartbeats in a stream, the maximum is 60 s.
   * @default 300_000
   */
  idleTimeoutMs?: number | undefined;
  /**
   * Whether calls that create runs send the current run's trace headers, so that the server's runs join the trace.
   * @default true
   */
  propagate?: boolean | undefined;
}

export const agentServerChecks: Checks<AgentServerOptions> = {
  ...clientChecks,
  url: ADDRESS,
  idleTimeoutMs: TIMEOUT,
  propagate: TRUE_OR_FALSE,
};

/** Selects the part of a list to request. */
export interface PageRequest {
  /** Number of items per page, from 1 to 1 000. @default 10 */
  limit?: number;
  /** Number of items to skip. @default 0 */
  offset?: number;
}

const PAGE_ITEMS = 10;

/**
 * Body or query for list requests. The client validates only `limit` and `offset`, which it needs to request further
 * pages.
 */
export const PAGE_BODY: BodySchema = v.pipe(
  BODY,
  v.looseObject({ limit: v.optional(whole(1, 1_000)), offset: v.optional(whole(0)) }),
);

/** Sends calls to an agent server. */
export class AgentService {
  readonly api: Api;
  readonly idleTimeoutMs: number;
  /** Timeout for response headers, in milliseconds, if the server sends them only when the run ends. */
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
    const call = callOf(endpoint, args);
    const send = async (headers: Record<string, string>): Promise<Result> =>
      (await this.api.send<Result>({ ...call, headers })).data;
    return endpoint.makesRun ? this.traced(call, send) : send({});
  }

  /** Lists items in pages by offset. A POST request sends the offset in its body, a GET request in its query. */
  list<Item>(endpoint: Endpoint, args: Arguments): PageList<Item> {
    const part = endpoint.method === 'GET' ? 'query' : 'body';
    const first = (): { call: PreparedCall; limit: number; offset: number } => {
      const call = callOf({ ...endpoint, body: both(endpoint.body ?? BODY, PAGE_BODY), isIdempotent: true }, args);
      const { limit = PAGE_ITEMS, offset = 0 } = call[part] as PageRequest;
      return { call, limit, offset };
    };
    return pagesFrom(first, async ({ call, limit, offset }) => {
      const answer = await this.api.send<unknown>({ ...call, [part]: { ...(call[part] as object), limit, offset } });
      const { data } = answer;
      // Some servers return the bare list instead of an object with `listField`.
      const items = Array.isArray(data) || endpoint.listField === undefined ? data : fieldOf(data, endpoint.listField);
      if (!Array.isArray(items)) throw this.api.invalidAnswer(call, answer, 'has no list');
      const next = nextOffset(answer.headers, offset + items.length, items.length >= limit);
      // Ends the list if the next offset does not advance. Otherwise the same page would be requested forever.
      const isLast = next === undefined || next <= offset;
      return { items, next: isLast ? undefined : { call, limit, offset: next } };
    });
  }

  /** Records a call that creates a run as a child of the current run, if there is one. */
  traced<Result>(
    { name, ids, body }: PreparedCall,
    send: (headers: Record<string, string>, run: Run | undefined) => Promise<Result>,
  ): Promise<Result> {
    const inputs = (): Record<string, unknown> => recordedInputs(ids, body);
    return tracedCall({ name, runType: 'chain', inputs }, (run) => send(this.traceHeaders(), run));
  }

  /** Returns the headers that propagate the current run. Empty if the `propagate` option is false. */
  traceHeaders(): Record<string, string> {
    return this.#options.propagate === false ? {} : traceHeaders(this.#options.headers ?? {});
  }
}

export function recordedInputs(ids: PreparedCall['ids'], body: unknown): Record<string, unknown> {
  return Array.isArray(body) ? { ...ids, runs: body } : { ...ids, ...(body as object) };
}

/**
 * Returns the next page's offset. If the server omits the header, another page follows each full page, unless the total
 * shows that it was the last.
 */
function nextOffset(headers: Answer<unknown>['headers'], end: number, isFull: boolean): number | undefined {
  const next = numberOf(headers['x-pagination-next']);
  if (next !== undefined || !isFull) return next;
  const total = numberOf(headers['x-pagination-total']);
  return total === undefined || total > end ? end : undefined;
}

function numberOf(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

function fieldOf(data: unknown, field: string): unknown {
  return isObject(data) ? data[field] : undefined;
}
