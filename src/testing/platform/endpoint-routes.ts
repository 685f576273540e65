import { type Endpoint, idErrors, PLACEHOLDER, type Table } from '../../clients/endpoint.ts';
import type { ValidationError } from '../../clients/errors.ts';
import { parseRequest, wireNameOf } from '../../clients/schema.ts';
import type { Check } from '../../config/checker.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import { type Call, type Route, type RouteResponse, readJson } from '../../receiver/http/route.ts';
import { refuseUnknownParameters } from '../../receiver/http/validation.ts';
import type { Requests } from './requests.ts';

/** A request to an endpoint of the platform, whose ids, query and body are valid. */
export interface EndpointCall {
  readonly ids: Readonly<Record<string, string>>;
  /**
   * The body as it was sent, in the names of the interface, or the query of a GET request whose endpoint has a body.
   * Undefined if the endpoint has none.
   */
  readonly body: unknown;
  readonly search: URLSearchParams;
  /** Id of the workspace that the key reaches. */
  readonly tenant: string;
  readonly call: Call;
}

export type Handler = (request: EndpointCall) => RouteResponse | Promise<RouteResponse>;

/** One handler for each call of a client, so that a new call without a handler does not compile. */
export type Handlers<Group> = { readonly [Name in keyof Group]: Handler };

export const NO_CONTENT: RouteResponse = { status: 204 };

export function okResponse(body: unknown): RouteResponse {
  return { status: 200, body };
}

export interface RouteSettings {
  readonly requests: Requests;
  readonly pathPrefix?: string;
  /** Translates a body to the names of the interface. */
  readonly named?: (body: unknown) => unknown;
  /** Throws an HttpError if the schema rejects fields of the body. @default `refuseErrors` */
  readonly refuse?: (errors: readonly ValidationError[]) => void;
}

/** Returns the routes for the endpoints of a client, which validate requests with the client's own schemas. */
export function endpointRoutes<Group>(
  table: Table<Group>,
  handlers: Handlers<Group>,
  settings: RouteSettings,
): readonly Route[] {
  return Object.entries<Endpoint>(table).map(([name, endpoint]) =>
    endpointRoute(endpoint, handlers[name as keyof Group], settings),
  );
}

export function endpointRoute(endpoint: Endpoint, handler: Handler, settings: RouteSettings): Route {
  const { method, path, body: schema } = endpoint;
  const { requests, pathPrefix = '', named = (body: unknown) => body, refuse = refuseErrors } = settings;
  return {
    method,
    path: pathPrefix + path.replace(PLACEHOLDER, ':$1'),
    async handle(call) {
      const { parameters: ids, search, request, scope } = call;
      const placeholders = [...path.matchAll(PLACEHOLDER)];
      refuseErrors(placeholders.flatMap(([, name = '', uuid]) => idErrors(name, ids[name], uuid)));
      checkQuery(endpoint, search);
      const hasBody = schema !== undefined && method !== 'GET';
      const given = hasBody ? await readJson(call) : undefined;
      requests.setBody(request, given);
      const body = schema === undefined || hasBody ? named(given) : fieldsIn(search);
      const place = hasBody ? 'body' : 'query';
      if (schema !== undefined) refuse(parseRequest(schema, body, [place]).errors);
      return handler({ ids, body, search, tenant: scope.tenant, call });
    },
  };
}

/** Throws an HttpError if there are errors: a list of them with the status 422, and one text with other statuses. */
export function refuseErrors(errors: readonly ValidationError[], status = 422): void {
  if (errors.length === 0) return;
  const texts = errors.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`);
  throw new HttpError(status, status === 422 ? errors : texts.join('; '));
}

/** Throws an HTTP 422 error for an unknown query parameter, or for a value that the client's checks reject. */
function checkQuery({ query = {}, options = {}, response, method, body }: Endpoint, search: URLSearchParams): void {
  if (method === 'GET' && body !== undefined) return;
  const checks = new Map<string, Check>(Object.entries(query).map(([name, [check]]) => [wireNameOf(name), check]));
  if (response === 'pages') for (const [name, check] of Object.entries(options)) checks.set(name, check);
  refuseUnknownParameters(search, [...checks.keys()]);
  for (const [name, text] of search) {
    const [expected, holds] = checks.get(name) as Check;
    if (valuesOf(text).some((value) => holds(value))) continue;
    refuseErrors([{ loc: ['query', name], msg: `Expected ${expected}`, type: 'value_error', input: text }]);
  }
}

function fieldsIn(search: URLSearchParams): Record<string, unknown> {
  return Object.fromEntries([...search].map(([name, text]) => [name, valuesOf(text).at(-1) ?? text]));
}

/** What the text of a query parameter can stand for. */
function valuesOf(text: string): unknown[] {
  const truth = { true: true, 1: true, false: false, 0: false }[text];
  return [text, text.split(','), truth, /^-?\d{1,15}$/.test(text) ? Number(text) : undefined];
}
