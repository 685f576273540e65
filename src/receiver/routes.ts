import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Access } from './access.ts';
import type { Faults } from './faults.ts';
import { feedbackRoutes, tokenRoutes } from './feedback/feedback-routes.ts';
import { fieldRoutes, interfaceRoutes } from './ingest/ingest-routes.ts';
import { RequestBodies } from './ingest/request-body.ts';
import { otlpRoutes } from './otlp/otlp-routes.ts';
import { SpanRuns } from './otlp/span-runs.ts';
import { pageRoutes } from './page-routes.ts';
import { attachmentRoutes } from './query/attachment-routes.ts';
import { queryRoutes } from './query/query-routes.ts';
import { Refusal } from './refusal.ts';
import type { Answer, Route } from './route.ts';
import type { Store } from './store/store.ts';

/** Answers a request or throws a Refusal. */
export type Routes = (request: IncomingMessage) => Promise<Answer>;

/** Clients of the field are also pointed to an endpoint with this path, to which they append theirs. */
const PREFIX = '/api/v1';

/** The endpoints of a receiver, over its store. */
export function createRoutes(store: Store, strict: boolean, faults: Faults, access: Access): Routes {
  const ofField = strict ? [] : [...fieldRoutes, ...feedbackRoutes, ...otlpRoutes];
  const ofPage = [...queryRoutes, ...attachmentRoutes, ...pageRoutes];
  const routes = [...interfaceRoutes, ...tokenRoutes, ...ofField, ...ofPage];
  const bodies = new RequestBodies();
  const spanRuns = new SpanRuns();
  const streams = new Set<Socket>();
  return async (request) => {
    access.checkHost(request);
    const { pathname, searchParams: search } = urlOf(request);
    const path = !strict && pathname.startsWith(PREFIX) ? pathname.slice(PREFIX.length) : pathname;
    const here = routes.filter((route) => route.path.test(path));
    const route = here.find((one) => one.method === request.method || isLookAt(one, request));
    access.admit(request, route?.admission ?? 'key');
    if (here.length === 0) throw new Refusal(404, `There is nothing at ${pathname}`);
    if (route === undefined) {
      const allowed = here.map(({ method }) => method).join(', ');
      throw new Refusal(405, `${pathname} takes ${allowed}, got ${request.method}`, { allow: allowed });
    }
    return route.handle({
      request,
      parameters: parametersOf(route, path),
      search,
      bodies,
      store,
      faults,
      access,
      spanRuns,
      streams,
      strict,
    });
  };
}

/** Proxies look whether somebody is there. Of what has a key, or does something, nothing is to be seen by that. */
function isLookAt({ method, admission }: Route, request: IncomingMessage): boolean {
  return request.method === 'HEAD' && method === 'GET' && admission === 'open';
}

function parametersOf(route: Route, path: string): Record<string, string> {
  const found = Object.entries(route.path.exec(path)?.groups ?? {});
  try {
    return Object.fromEntries(found.map(([name, text]) => [name, decodeURIComponent(text)]));
  } catch {
    throw new Refusal(400, 'The address of the request has a % that begins no escape');
  }
}

/** Most requests name the path alone; one that names a whole address has to mean the host that it asks. */
function urlOf({ url = '', headers }: IncomingMessage): URL {
  const own = `http://${headers.host}`;
  const address = url.startsWith('/') ? own + url : url;
  if (URL.canParse(address) && URL.canParse(own)) {
    const asked = new URL(address);
    if (asked.host === new URL(own).host) return asked;
  }
  throw new Refusal(400, 'The address of the request is no URL of this receiver');
}
