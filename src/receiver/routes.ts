import type { IncomingMessage } from 'node:http';
import { version } from '../base/version.ts';
import { parseJson } from './json.ts';
import { readJsonBatch, readPatch, readPost } from './json-ingestion.ts';
import { boundaryOf, readParts } from './multipart.ts';
import { readBatch } from './multipart-batch.ts';
import { Refusal } from './refusal.ts';
import { readBody } from './request-body.ts';
import type { RunOperation, Store } from './store.ts';

/** What a request is answered with, as JSON. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Answers a request or throws a Refusal. */
export type Routes = (request: IncomingMessage) => Promise<Answer>;

/** The endpoints of trace ingestion, over a store. */
export function createRoutes(store: Store, strict: boolean): Routes {
  const routes = strict ? INTERFACE : [...INTERFACE, ...FIELD];
  return async (request) => {
    const { pathname } = urlOf(request);
    const path = pathname.startsWith(PREFIX) ? pathname.slice(PREFIX.length) : pathname;
    const here = routes.filter((route) => route.path.test(path));
    if (here.length === 0) throw new Refusal(404, `There is nothing at ${pathname}`);
    const route = here.find(({ method }) => method === request.method);
    if (route === undefined) {
      const allowed = here.map(({ method }) => method).join(', ');
      throw new Refusal(405, `${pathname} takes ${allowed}, got ${request.method}`, { allow: allowed });
    }
    if ('answer' in route) return { status: 200, body: route.answer };
    const operations = await route.read(request, strict, path);
    await store.apply(operations);
    return { status: 202, body: { accepted: operations.length } };
  };
}

/** Clients of the field are also pointed to an endpoint with this path, to which they append theirs. */
const PREFIX = '/api/v1';

type Route = { readonly method: string; readonly path: RegExp } & (
  | { readonly answer: unknown }
  /** What a request wants written, checked whole: only then anything is applied. */
  | { readonly read: (request: IncomingMessage, strict: boolean, path: string) => Promise<readonly RunOperation[]> }
);

/** What `GET /info` says: clients set their batches by it. It is no part of the interface, but all of them ask. */
const INFO = {
  version,
  batch_ingest_config: { use_multipart_endpoint: true, size_limit: 100, size_limit_bytes: 20 * 1024 * 1024 },
  // gzip is taken, but on one machine it only costs time.
  instance_flags: { gzip_body_enabled: false },
};

const INTERFACE: readonly Route[] = [
  { method: 'GET', path: /^\/info$/, answer: INFO },
  {
    method: 'POST',
    path: /^\/runs\/multipart$/,
    read: async (request, strict) => {
      const boundary = boundaryOf(request.headers['content-type']);
      return readBatch(await readParts(await readBody(request), boundary), strict);
    },
  },
  { method: 'POST', path: /^\/runs$/, read: async (request, strict) => [readPost(await readJson(request), strict)] },
  {
    method: 'PATCH',
    path: /^\/runs\/(?!(?:multipart|batch)$)[^/]+$/,
    read: async (request, strict, path) => [readPatch(await readJson(request), path.slice('/runs/'.length), strict)],
  },
];

const FIELD: readonly Route[] = [
  { method: 'POST', path: /^\/runs\/batch$/, read: async (request) => readJsonBatch(await readJson(request)) },
];

function urlOf(request: IncomingMessage): URL {
  try {
    return new URL(request.url ?? '', 'http://localhost');
  } catch {
    throw new Refusal(400, 'The address of the request is no URL');
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(contentType)) {
    throw new Refusal(415, `Expected content-type to be application/json, got ${JSON.stringify(contentType)}`);
  }
  return parseJson(await readBody(request), 'The body');
}
