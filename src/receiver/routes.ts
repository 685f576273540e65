import type { IncomingMessage } from 'node:http';
import { version } from '../base/version.ts';
import type { Faults } from './faults.ts';
import { JsonReader } from './json.ts';
import { readJsonBatch, readPatch, readPost } from './json-ingestion.ts';
import { boundaryOf, readParts } from './multipart.ts';
import { readBatch } from './multipart-batch.ts';
import { Refusal } from './refusal.ts';
import { RequestBodies } from './request-body.ts';
import { readRunQuery } from './run-query.ts';
import type { RunOperation, RunQuery, Store } from './store.ts';

/** What a request is answered with, as JSON. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers a request or throws a Refusal. */
export type Routes = (request: IncomingMessage) => Promise<Answer>;

/** The endpoints of trace ingestion, and one to read a trace by, over a store. */
export function createRoutes(store: Store, strict: boolean, faults: Faults): Routes {
  const routes = strict ? INTERFACE : [...INTERFACE, ...FIELD];
  const bodies = new RequestBodies();
  return async (request) => {
    const { pathname } = urlOf(request);
    const path = !strict && pathname.startsWith(PREFIX) ? pathname.slice(PREFIX.length) : pathname;
    const here = routes.filter((route) => route.path.test(path));
    if (here.length === 0) throw new Refusal(404, `There is nothing at ${pathname}`);
    const route = here.find(({ method }) => method === request.method);
    if (route === undefined) {
      const allowed = here.map(({ method }) => method).join(', ');
      throw new Refusal(405, `${pathname} takes ${allowed}, got ${request.method}`, { allow: allowed });
    }
    if ('answer' in route) return { status: 200, body: route.answer };
    const call = { request, bodies, path, strict };
    if ('ask' in route) return { status: 200, body: { runs: await store.runs(await route.ask(call)) } };
    const operations = await route.read(call);
    await faults.meet(operations);
    await store.apply(operations);
    return { status: 202, body: { accepted: operations.length } };
  };
}

/** Clients of the field are also pointed to an endpoint with this path, to which they append theirs. */
const PREFIX = '/api/v1';

type Route = { readonly method: string; readonly path: RegExp } & (
  | { readonly answer: unknown }
  /** Which runs are asked for. */
  | { readonly ask: (call: Call) => Promise<RunQuery> }
  /** What a request wants written, checked whole: only then anything is applied. */
  | { readonly read: (call: Call) => Promise<readonly RunOperation[]> }
);

interface Call {
  readonly request: IncomingMessage;
  readonly bodies: RequestBodies;
  readonly path: string;
  readonly strict: boolean;
}

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
    read: async ({ request, bodies, strict }) => {
      const boundary = boundaryOf(request.headers['content-type']);
      return bodies.read(request, async (body) => readBatch(await readParts(body, boundary, strict), strict));
    },
  },
  { method: 'POST', path: /^\/runs$/, read: async (call) => [readPost(await readJson(call), call.strict)] },
  {
    method: 'PATCH',
    path: /^\/runs\/(?!(?:multipart|batch|query)$)[^/]+$/,
    read: async (call) => [readPatch(await readJson(call), call.path.slice('/runs/'.length), call.strict)],
  },
];

const FIELD: readonly Route[] = [
  { method: 'POST', path: /^\/runs\/batch$/, read: async (call) => readJsonBatch(await readJson(call)) },
  // Whoever knows the id of a trace has it from the program that made it: ids cannot be guessed.
  { method: 'POST', path: /^\/runs\/query$/, ask: async (call) => readRunQuery(await readJson(call)) },
];

function urlOf(request: IncomingMessage): URL {
  try {
    return new URL(request.url ?? '', 'http://localhost');
  } catch {
    throw new Refusal(400, 'The address of the request is no URL');
  }
}

async function readJson({ request, bodies }: Call): Promise<unknown> {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(contentType)) {
    throw new Refusal(415, `Expected content-type to be application/json, got ${JSON.stringify(contentType)}`);
  }
  return bodies.read(request, (body) => new JsonReader().parse(body, 'The body'));
}
