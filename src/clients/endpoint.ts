import { type Check, type Checks, checkedOptions } from '../config/checker.ts';
import type { StreamBody } from '../http/transport.ts';
import type { BodySchema, ResponseKind } from './body.ts';
import { type CallOptions, callChecks, callOptionsOf } from './client-options.ts';
import { InvalidRequestError, type ValidationError } from './errors.ts';
import { isUuid, parseRequest, wireNameOf } from './schema.ts';

/** Converts a boolean to a query parameter: 1 for true, omitted for false. */
export const ONE_IF_TRUE = (value: boolean): number | undefined => (value ? 1 : undefined);

export interface Endpoint {
  /** Name of the call in errors, hooks and runs, for example `deployments.create`. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** Path with placeholders for ids. `{name}` accepts any id. `{name:uuid}` accepts only a UUID. */
  readonly path: string;
  /** Schema for the request body. GET requests send the parsed fields as query parameters instead. */
  readonly body?: BodySchema;
  /** Additional call options that are not sent to the service. */
  readonly options?: Readonly<Record<string, Check>>;
  /** Additional call options to send as query parameters. Option names are converted to snake case. */
  readonly query?: Readonly<Record<string, readonly [check: Check, convert?: (value: never) => QueryValue]>>;
  /** @default 'object' */
  readonly response?: ResponseKind;
  /** Name of the response field with the page's items, if the response is an object. */
  readonly listField?: string;
  /**
   * Whether the request may be repeated. By default, all requests except POST and PATCH may be repeated (RFC 9110,
   * 9.2.2).
   */
  readonly isIdempotent?: boolean | ((body: never) => boolean);
  /**
   * Whether the call creates a run on the server. Inside a traced function, such a call is recorded and sends trace
   * headers.
   */
  readonly makesRun?: boolean;
}

type Row = readonly [request: `${Endpoint['method']} ${string}`, more?: Omit<Endpoint, 'name' | 'method' | 'path'>];

export type Table<Group> = Readonly<Record<keyof Group, Endpoint>>;

/**
 * Creates the endpoints of a group. For example, the row `{ get: ['GET /threads/{thread_id}'] }` in the group `threads`
 * defines `threads.get`.
 */
export function endpoints<Group>(group: string, rows: Readonly<Record<keyof Group, Row>>): Table<Group> {
  const table = Object.entries<Row>(rows).map(([call, [request, more]]) => {
    const [method, path = ''] = request.split(' ');
    return [call, { name: `${group}.${call}`, method: method as Endpoint['method'], path, ...more }];
  });
  return Object.fromEntries(table);
}

/** Sends a call. The type of the result depends on the endpoint's `response`. */
export type Send = <Result>(endpoint: Endpoint, args: Arguments) => Result;

/**
 * Creates the methods of a group. Each method takes the ids in the path, the body if the endpoint has a body schema,
 * and the options.
 */
export function methodsOf<Group>(table: Table<Group>, send: Send): Group {
  const methods = Object.entries<Endpoint>(table).map(([name, endpoint]) => {
    const { length } = [...endpoint.path.matchAll(PLACEHOLDER)];
    const method = (...given: unknown[]): unknown => {
      const [body = {}, options] = endpoint.body === undefined ? [undefined, given[length]] : given.slice(length);
      return send(endpoint, { ids: given.slice(0, length), body, options } as Arguments);
    };
    return [name, method];
  });
  return Object.fromEntries(methods);
}

/** A placeholder in a path, with its name and, if only UUIDs fit, `:uuid`. */
export const PLACEHOLDER: RegExp = /\{(\w+)(:uuid)?\}/g;

type OwnOptions = CallOptions & Readonly<Record<string, unknown>>;

type QueryValue = string | number | boolean | readonly string[] | null | undefined;

/** Query parameters. A list is sent as several parameters with the same name. */
export type Query = Readonly<Record<string, QueryValue>>;

/** A request that is ready to send. */
export interface Call extends Pick<Endpoint, 'name' | 'method' | 'response'> {
  /** Encoded path, relative to the base URL. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** Creates the body for each attempt, instead of `body`. */
  readonly stream?: () => StreamBody;
  readonly headers?: Readonly<Record<string, string>>;
  readonly isIdempotent?: boolean;
  readonly secrets?: readonly string[];
  readonly options?: CallOptions | undefined;
}

export interface Arguments {
  /** Ids for the placeholders in the path, in path order. */
  readonly ids?: readonly string[];
  readonly body?: unknown;
  readonly options?: CallOptions | undefined;
}

export interface PreparedCall extends Call {
  /** Ids, keyed by placeholder name. */
  readonly ids: Readonly<Record<string, string>>;
  /** Options that are specific to this call. */
  readonly own: Readonly<Record<string, unknown>>;
}

/**
 * Validates a call's arguments and creates its request. Throws an InvalidRequestError or a RunspanError if an argument
 * is invalid.
 */
export function preparedCall(endpoint: Endpoint, args: Arguments): PreparedCall {
  const { name, method, path, body: schema, options = {}, query = {} } = endpoint;
  const placeholders = [...path.matchAll(PLACEHOLDER)];
  const ids = placeholders.map(([, id = '', uuid], index) => [id, args.ids?.[index] ?? '', uuid] as const);
  const body = schema === undefined ? undefined : parseRequest(schema, args.body, ['body']);
  const errors = [...ids.flatMap(([id, value, uuid]) => idErrors(id, value, uuid)), ...(body?.errors ?? [])];
  if (errors.length > 0) throw new InvalidRequestError(name, errors);
  const sent = Object.fromEntries(Object.entries(query).map(([option, [check]]) => [option, check]));
  const checks = { ...callChecks, ...options, ...sent } as Checks<OwnOptions>;
  const own = checkedOptions<OwnOptions>(`the options of ${name}`, args.options ?? {}, checks);
  const values = ids.values();
  const { response, isIdempotent: rule } = endpoint;
  const isIdempotent = typeof rule === 'function' ? rule(body?.value as never) : rule;
  const isQuery = method === 'GET' && body !== undefined;
  return {
    name,
    method,
    path: path.replace(PLACEHOLDER, () => pathOf(values.next().value?.[1] ?? '')),
    query: { ...(isQuery && (body.value as Query)), ...queryOf(query, own) },
    ...(body !== undefined && !isQuery && { body: body.value }),
    ...(response !== undefined && { response }),
    ...(isIdempotent !== undefined && { isIdempotent }),
    ids: Object.fromEntries(ids),
    own,
    options: callOptionsOf(own),
  };
}

/** Encodes a path segment to prevent path traversal. */
export function pathOf(segment: string): string {
  // `encodeURIComponent` does not encode dots, and the segment `..` would remove the preceding segment.
  return encoded(segment).replace(/^\.{1,2}$/, (dots) => dots.replaceAll('.', '%2E'));
}

export function queryText(query: Query | undefined): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) =>
    [value]
      .flat()
      .flatMap((one) => (one === undefined || one === null ? [] : [`${encoded(name)}=${encoded(`${one}`)}`])),
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/**
 * Rejects empty ids, `.` and `..`, because they would change the path. Encoding the dots would not help, because
 * proxies decode encoded dots (RFC 3986, 6.2.2.2).
 */
export function idErrors(name: string, value: unknown, uuid: string | undefined): ValidationError[] {
  const loc = ['path', name];
  if (uuid !== undefined) return isUuid(value) ? [] : [{ loc, msg: 'Expected a UUID', type: 'uuid_parsing' }];
  const isSegment = typeof value === 'string' && value !== '' && value !== '.' && value !== '..';
  const msg = 'Expected a non-empty string other than . or ..';
  return isSegment ? [] : [{ loc, msg, type: 'value_error' }];
}

function queryOf(query: NonNullable<Endpoint['query']>, own: OwnOptions): Query {
  const given = Object.entries(query).filter(([option]) => own[option] !== undefined);
  const parameters = given.map(([option, [, convert]]) => {
    const value = own[option] as never;
    return [wireNameOf(option), convert === undefined ? value : convert(value)];
  });
  return Object.fromEntries(parameters);
}

/** Encodes text for a URL. Lone surrogates are replaced, because `encodeURIComponent` throws an error for them. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
