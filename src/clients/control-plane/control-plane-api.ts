import { isObject, wholeFrom } from '../../config/checker.ts';
import { defined } from '../../payload/fields.ts';
import type { Api, ApiResponse } from '../api.ts';
import type { CallOptions } from '../client-options.ts';
import { type Arguments, type Endpoint, type PreparedCall, preparedCall, type Send } from '../endpoint.ts';
import { type PageList, pagesFrom } from '../page.ts';
import { tracedCall } from '../tracing.ts';
import { hideSecretValues, secretValuesOf, withoutSecretValues } from './secret-values.ts';
import type { SpellingTable } from './spelling.ts';

/** Page size and offset of a list request. */
export interface ListOptions extends CallOptions {
  /** Number of items per page, at most 100. @default 20 */
  limit?: number;
  /** Number of items to skip. */
  offset?: number;
}

export const LIST_OPTIONS: NonNullable<Endpoint['options']> = {
  limit: wholeFrom(1, 100),
  offset: wholeFrom(0, Number.MAX_SAFE_INTEGER),
};

const PAGE_ITEMS = 20;

/**
 * Sends the requests of a ControlPlane. Translates between this package's names and the service's names. Each call
 * inside a traced function is recorded.
 */
export class ControlPlaneApi {
  readonly api: Api;
  readonly spelling: SpellingTable;

  constructor(api: Api, spelling: SpellingTable) {
    this.api = api;
    this.spelling = spelling;
  }

  readonly call: Send = (endpoint, args) =>
    (endpoint.response === 'pages' ? this.#list(endpoint, args) : this.#call(endpoint, args)) as never;

  async #call<Result>(endpoint: Endpoint, args: Arguments): Promise<Result> {
    return (await this.traced<Result>(preparedCall(endpoint, args))).data;
  }

  async traced<Result>(
    call: PreparedCall,
    outputs = ({ data }: ApiResponse<Result>): Record<string, unknown> => recorded(data),
  ): Promise<ApiResponse<Result>> {
    const inputs = (): Record<string, unknown> => recorded({ ...call.ids, ...call.query, ...(call.body as object) });
    return tracedCall({ name: call.name, runType: 'tool', inputs, outputs }, () => this.send<Result>(call));
  }

  /** Sends a call without recording it. */
  async send<Result>(call: PreparedCall): Promise<ApiResponse<Result>> {
    const body = this.spelling.toWire(call.body);
    const response = await this.api.send<unknown>({ ...call, body, secrets: secretValuesOf(call.body) });
    return { ...response, data: hideSecretValues(this.#withOwnNames(response.data)) as Result };
  }

  /**
   * Lists items page by page. A response is an array, or an object with the array `resources` and the offset of the next
   * page.
   */
  #list<Item extends object>(endpoint: Endpoint, args: Arguments): PageList<Item> {
    const first = (): PageCursor => {
      const call = preparedCall(endpoint, args);
      return { call, offset: (call.own.offset as number | undefined) ?? 0, firstItem: undefined };
    };
    return pagesFrom(first, async ({ call, offset, firstItem: previousItem }) => {
      const limit = (call.own.limit as number | undefined) ?? PAGE_ITEMS;
      const response = await this.traced<unknown>({ ...call, query: { ...call.query, limit, offset } });
      const { data } = response;
      const { resources, offset: next } = Array.isArray(data)
        ? { resources: data, offset: offset + data.length }
        : (Object(data) as { readonly resources?: unknown; readonly offset?: unknown });
      if (!Array.isArray(resources)) throw this.api.invalidResponse(call, response, 'has no list of resources');
      // A service that returns arrays may ignore the offset, and return the first page again.
      const firstItem = Array.isArray(data) ? JSON.stringify(data[0]) : undefined;
      if (firstItem !== undefined && firstItem === previousItem) return { items: [], next: undefined };
      // Stop if the next offset does not advance, to avoid requesting the same page forever.
      const isLast = resources.length < limit || typeof next !== 'number' || !(next > offset);
      return { items: resources as Item[], next: isLast ? undefined : { call, offset: next, firstItem } };
    });
  }

  #withOwnNames(data: unknown): unknown {
    if (Array.isArray(data)) return data.map((resource) => this.spelling.fromWire(resource));
    if (!isObject(data) || !Array.isArray(data.resources)) return this.spelling.fromWire(data);
    return { ...data, resources: this.#withOwnNames(data.resources) };
  }
}

interface PageCursor {
  readonly call: PreparedCall;
  readonly offset: number;
  /** The previous page's first item as JSON, if the service returns arrays. */
  readonly firstItem: string | undefined;
}

function recorded(value: unknown): Record<string, unknown> {
  const shown = withoutSecretValues(value);
  if (shown === undefined || shown === null) return {};
  if (typeof shown !== 'object' || Array.isArray(shown)) return { outputs: shown };
  return defined(shown as Record<string, unknown>);
}
