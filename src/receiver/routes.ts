import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Access } from './access.ts';
import type { Faults } from './faults.ts';
import { feedbackRoutes, tokenRoutes } from './feedback/feedback-routes.ts';
import { HttpError } from './http-error.ts';
import { fieldRoutes, interfaceRoutes } from './ingest/ingest-routes.ts';
import { RequestBodies } from './ingest/request-body.ts';
import { otlpRoutes } from './otlp/otlp-routes.ts';
import { pageRoutes } from './page-routes.ts';
import { attachmentRoutes } from './query/attachment-routes.ts';
import { queryRoutes } from './query/query-routes.ts';
import type { Route, RouteResponse } from './route.ts';
import { DEFAULT_SCOPE, type Store } from './store/store.ts';

/** Responds to a request, or throws a HttpError. */
export type Routes = (request: IncomingMessage) => Promise<RouteResponse>;

/** Other clients append their paths to an endpoint with this prefix. */
const PREFIX = '/api/v1';
/** The interface describes these paths with the prefix, so it is also valid in strict mode. */
const PREFIXED = `${PREFIX}/feedback/tokens`;

/** Returns the routes of a receiver. */
export function createRoutes(store: Store, strict: boolean, faults: Faults, access: Access): Routes {
  const others = [...fieldRoutes, ...feedbackRoutes, ...otlpRoutes];
  const tree = treeOf([
    ...interfaceRoutes,
    ...tokenRoutes,
    ...others,
    ...queryRoutes,
    ...attachmentRoutes,
    ...pageRoutes,
  ]);
  const hidden = new Set(strict ? others : []);
  const bodies = new RequestBodies();
  const streams = new Set<Socket>();
  return async (request) => {
    access.checkHost(request);
    const { pathname, searchParams: search } = urlOf(request);
    const hasPrefix = pathname.startsWith(strict ? PREFIXED : `${PREFIX}/`);
    const segments = segmentsOf(hasPrefix ? pathname.slice(PREFIX.length) : pathname);
    const found = routesAt(tree, segments).filter((one) => !hidden.has(one));
    const route = found.find((one) => one.method === request.method || isProbe(one, request));
    access.admit(request, route?.admission ?? 'key');
    if (found.length === 0) throw new HttpError(404, `There is nothing at ${pathname}`);
    if (route === undefined) {
      const allowed = found.map(({ method }) => method).join(', ');
      throw new HttpError(405, `${pathname} accepts ${allowed}, got ${request.method}`, { allow: allowed });
    }
    const parameters = parametersOf(route, segments);
    const scope = DEFAULT_SCOPE;
    return route.handle({ request, parameters, search, bodies, store, scope, faults, access, streams, strict });
  };
}

/** The routes by the segments of their paths. The child `:` matches every other segment. */
interface Tree {
  readonly children: Map<string, Tree>;
  readonly routes: Route[];
}

function treeOf(routes: readonly Route[]): Tree {
  const tree: Tree = { children: new Map(), routes: [] };
  for (const route of routes) {
    let node = tree;
    for (const segment of segmentsOf(route.path)) {
      const key = segment.startsWith(':') ? ':' : segment;
      const child = node.children.get(key) ?? { children: new Map(), routes: [] };
      node.children.set(key, child);
      node = child;
    }
    node.routes.push(route);
  }
  return tree;
}

function routesAt(tree: Tree, segments: readonly string[]): readonly Route[] {
  let node: Tree | undefined = tree;
  for (const segment of segments) {
    node = node?.children.get(segment) ?? (segment === '' ? undefined : node?.children.get(':'));
  }
  return node?.routes ?? [];
}

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1);
}

/** Whether the request is a HEAD for an open route, for example from the health check of a proxy. */
function isProbe({ method, admission }: Route, request: IncomingMessage): boolean {
  return request.method === 'HEAD' && method === 'GET' && admission === 'open';
}

function parametersOf(route: Route, segments: readonly string[]): Record<string, string> {
  const parameters: Record<string, string> = {};
  for (const [at, name] of segmentsOf(route.path).entries()) {
    if (name.startsWith(':')) parameters[name.slice(1)] = decoded(segments[at] ?? '');
  }
  return parameters;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new HttpError(400, 'The path of the request contains an invalid escape');
  }
}

/** A request usually has only a path. In an absolute URL, the host must be the one of the `Host` header. */
function urlOf({ url = '', headers }: IncomingMessage): URL {
  const own = `http://${headers.host}`;
  const address = url.startsWith('/') ? own + url : url;
  if (URL.canParse(address) && URL.canParse(own)) {
    const parsed = new URL(address);
    if (parsed.host === new URL(own).host) return parsed;
  }
  throw new HttpError(400, 'The URL of the request is not a URL of this receiver');
}
