import type { IncomingMessage } from 'node:http';
import { nameInPath } from '../domain/path-segment.ts';
import { DEFAULT_SCOPE, type Store, StoreError } from '../store/store.ts';
import { ChangeStreams } from './change-stream.ts';
import { HttpError, toHttpError } from './http-error.ts';
import { ReadCache } from './read-cache.ts';
import { LIMITS, LIMITS_OF_ANYONE, RequestBodies } from './request-body.ts';
import type { Call, Route, RouteResponse } from './route.ts';
import { Metrics } from './server/metrics.ts';

/** Responds to a request, or throws an HttpError. */
export type Routes = (
  request: IncomingMessage,
  liftTimeout: () => void,
  /** Aborts when the client leaves. */
  left?: AbortSignal,
  /** Called before the body is read: the client has shown a key, or the route needs none. */
  admitted?: (needsKey: boolean) => void,
) => Promise<RouteResponse>;

/** Path prefix that LangSmith clients use. */
const PREFIX = '/api/v1';
/** In strict mode, only paths for feedback tokens may have the prefix `/api/v1`. */
const PREFIXED = `${PREFIX}/feedback/tokens`;

/** Minimum interval between tests of writing, in milliseconds. */
const WRITE_TEST_MS = 10_000;

export interface RoutesOptions
  extends Pick<
    Call,
    'strict' | 'faults' | 'access' | 'limits' | 'status' | 'tenants' | 'readyMs' | 'received' | 'mapping' | 'select'
  > {
  readonly store: Store & { readonly lag?: string | undefined; readonly fault?: string | undefined };
  readonly metrics?: Metrics;
}

/** Returns a function that responds to requests. `others` are the routes that strict mode hides. */
export function createRoutes(
  routes: readonly Route[],
  others: readonly Route[],
  { store, metrics = new Metrics(), ...options }: RoutesOptions,
): Routes {
  const { strict, access } = options;
  const endpoints = endpointsOf(routes);
  const hidden = new Set(strict ? others : []);
  const prefix = strict ? PREFIXED : `${PREFIX}/`;
  const writes = new ReadCache<string>();
  const context = {
    ...options,
    store: metrics.measured(store),
    writeProblem: () =>
      writes.read('test', () => store.apply(DEFAULT_SCOPE, []).then(() => '', reasonOf), WRITE_TEST_MS),
    lag: () => store.lag,
    fault: () => store.fault,
    tokens: access.tokens,
    metrics,
    streams: new ChangeStreams(),
  };
  const onRead = (bytes: number): void => {
    metrics.receivedBytes += bytes;
  };
  const [bodies, bodiesOfAnyone] = [new RequestBodies(LIMITS, onRead), new RequestBodies(LIMITS_OF_ANYONE, onRead)];
  const respond: Routes = async (request, liftTimeout, left, admitted) => {
    access.checkHost(request);
    const { pathname, searchParams: search } = targetOf(request);
    const path = pathname.startsWith(prefix) ? pathname.slice(PREFIX.length) : pathname;
    const endpoint = endpoints.find(({ pattern }) => pattern.test(path));
    const found = endpoint?.routes.filter((one) => !hidden.has(one)) ?? [];
    const route = found.find((one) => one.method === request.method || isProbe(one, request));
    const page = access.pageOrigin(request);
    if (request.method === 'OPTIONS' && page !== undefined && found.some(({ isForPages }) => isForPages)) {
      return { status: 204, headers: { ...corsHeaders(page), ...PREFLIGHT } };
    }
    const isForPages = route?.isForPages === true;
    const admission = route?.admission ?? 'read';
    const { scope: reached, permission } = await access.admit(request, admission, isForPages);
    admitted?.(admission !== 'anyone' && admission !== 'open');
    const unserved = route === undefined && !strict ? unservedError(request.method, path) : undefined;
    if (unserved !== undefined) throw unserved;
    if (found.length === 0) throw new HttpError(404, `No route matches ${pathname}`);
    if (route === undefined) {
      const allowed = found.map(({ method }) => method).join(', ');
      throw new HttpError(405, `${pathname} accepts ${allowed}, got ${request.method}`, { allow: allowed });
    }
    const parameters = parametersIn(path, endpoint);
    const scope = { ...reached, ...(left && { signal: left }) };
    const call = { ...context, scope, permission, request, liftTimeout, parameters, search };
    const response = await route.handle({ ...call, bodies: admission === 'anyone' ? bodiesOfAnyone : bodies });
    if (!isForPages || page === undefined) return response;
    return { ...response, headers: { ...response.headers, ...corsHeaders(page) } };
  };
  return async (request, liftTimeout, left, admitted) => {
    try {
      const response = await respond(request, liftTimeout, left, admitted);
      metrics.responded(response.status);
      return response;
    } catch (error) {
      if (left?.aborted !== true) metrics.responded(toHttpError(error)?.status ?? 500);
      throw error;
    }
  };
}

/** `/readyz` needs no key. The text after the first colon of an error may contain host names and paths. */
function reasonOf(error: unknown): string {
  return error instanceof StoreError ? (error.message.split(':', 1)[0] ?? '') : 'The store cannot write';
}

/** Headers with which a browser lets a page of this origin read a response. */
function corsHeaders(origin: string): Record<string, string> {
  return { 'access-control-allow-origin': origin, vary: 'origin' };
}

/** What a browser may send after it has asked. */
const PREFLIGHT: Readonly<Record<string, string>> = {
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'authorization, content-encoding, content-type, langsmith-project, x-api-key',
  'access-control-max-age': '86400',
};

interface Endpoint {
  /** Regular expression that matches the path, with a named group for each path parameter. */
  readonly pattern: RegExp;
  readonly routes: readonly Route[];
}

/** Groups routes by path. Paths with fewer parameters come first and take precedence. */
function endpointsOf(routes: readonly Route[]): Endpoint[] {
  const parametersOf = (path: string): number => path.split(':').length;
  const paths = [...new Set(routes.map(({ path }) => path))];
  const sorted = paths.sort((one, other) => parametersOf(one) - parametersOf(other));
  return sorted.map((path) => ({
    pattern: new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`),
    routes: routes.filter((route) => route.path === path),
  }));
}

/** Returns whether the request is a HEAD request for an open route. Proxies send HEAD requests as health checks. */
function isProbe({ method, admission }: Route, request: IncomingMessage): boolean {
  return request.method === 'HEAD' && method === 'GET' && admission === 'open';
}

function parametersIn(path: string, endpoint: Endpoint | undefined): Record<string, string> {
  const groups = endpoint?.pattern.exec(path)?.groups ?? {};
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, segment]) => [name, nameInPath(segment)]));
  } catch {
    throw new HttpError(400, 'The request path contains an invalid escape sequence');
  }
}

/** Parses the request target, which is either a path or an absolute URL of this receiver. */
export function targetOf({ url = '', headers }: IncomingMessage): URL {
  const own = `http://${headers.host}`;
  const target = url.startsWith(`${own}/`) ? url.slice(own.length) : url;
  if (!target.startsWith('/')) throw new HttpError(400, 'The request URL does not belong to this receiver');
  // The `Host` header has already been checked. A constant host makes every path a valid URL.
  return new URL(`http://receiver${target}`);
}

/** Paths of LangSmith's API that the receiver does not serve, and where to look instead. */
const UNSERVED: readonly (readonly [request: RegExp, detail: string])[] = [
  [
    /^\w+ \/(?:datasets|examples|(?:v1\/)?platform\/(?:datasets|evaluators))(?:\/|$)/,
    'Datasets, examples and experiments are not served: keep them in LangSmith, or in the tests of your program',
  ],
  [
    /^\w+ \/(?:(?:v1\/)?platform\/)?annotation-queues(?:\/|$)/,
    'Annotation queues are not served: store the judgement of a run with POST /feedback',
  ],
  [/^\w+ \/(?:repos|commits|prompts|likes)(?:\/|$)/, 'Prompts are not served: keep them in LangSmith or in your code'],
  [
    /^\w+ \/(?:public\/|runs\/[^/]+\/share$)/,
    'Shared links are not served: save a trace as a file with GET /query/traces/{id}/export?format=html',
  ],
  [
    /^POST \/runs\/(?:group|stats)(?:\/|$)/,
    'Groups and statistics of runs are not served here: use GET /query/threads and GET /query/statistics',
  ],
  [
    /^(?:POST|PATCH|PUT|DELETE) \/sessions(?:\/|$)/,
    'A project is neither created nor changed: it exists while it has runs, and DELETE /query/projects/{name} deletes it',
  ],
  [/^\w+ \/feedback-configs(?:\/|$)/, 'Feedback is not configured: POST /feedback accepts each key, score and value'],
  [/^\w+ \/(?:settings|workspaces|orgs|api-key)(?:\/|$)/, 'Workspaces are not served: manage keys with `runspan keys`'],
  [
    /^\w+ \/api\/v2\/(?:runs|threads|traces|datasets|public|sandboxes)\//,
    'Version 2 of the API is not served: use the methods of version 1, for example listRuns and readRun',
  ],
];

function unservedError(method: string | undefined, path: string): HttpError | undefined {
  const detail = UNSERVED.find(([request]) => request.test(`${method} ${path}`))?.[1];
  return detail === undefined ? undefined : new HttpError(501, detail);
}
