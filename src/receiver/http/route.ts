import type { IncomingMessage } from 'node:http';
import type { SpanMapping } from '../../otel/mapping/span-to-run.ts';
import type { SpanLike } from '../../otel/span-like.ts';
import type { Scope } from '../domain/query/query.ts';
import type { RunOperation } from '../domain/run-message.ts';
import type { Permission } from '../store/key-store.ts';
import type { Store, StoreStatus } from '../store/store.ts';
import type { Access, Admission } from './access/access.ts';
import type { TokenSigner } from './access/token-signer.ts';
import type { ChangeStreams } from './change-stream.ts';
import { HttpError } from './http-error.ts';
import { JsonReader } from './json.ts';
import type { RequestBodies } from './request-body.ts';
import { uuidSchema } from './run-fields.ts';
import type { RunLimits } from './run-limits.ts';
import type { Faults } from './server/faults.ts';
import type { Metrics } from './server/metrics.ts';
import { validated } from './validation.ts';

/** An HTTP response. Contains either `body`, which is sent as JSON, or `content` in another format. */
export interface RouteResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The body, or a function that streams it. The signal aborts if the client leaves or the receiver closes. */
  readonly content?: Uint8Array | string | ((ended: AbortSignal) => AsyncIterable<string>);
}

/** A request, and the parts of the receiver that routes use. */
export interface Call {
  readonly request: IncomingMessage;
  /** Removes the time limit of the request, so that the body may have any size. */
  readonly liftTimeout: () => void;
  readonly parameters: Readonly<Record<string, string>>;
  readonly search: URLSearchParams;
  readonly bodies: RequestBodies;
  readonly store: Store;
  /** Resolves with why the store could not write in the latest test. Empty if it could. */
  readonly writeProblem: () => Promise<string>;
  /** Returns why the store acknowledges no writes, if it knows. */
  readonly fault: () => string | undefined;
  /** Returns how late the store deletes old runs, as a text, if it is late. */
  readonly lag: () => string | undefined;
  /** Data that the request's key can reach. Without a key, the scope contains no data. */
  readonly scope: Scope;
  readonly permission: Permission;
  readonly tokens: TokenSigner;
  readonly faults: Faults;
  readonly access: Access;
  readonly streams: ChangeStreams;
  readonly strict: boolean;
  readonly metrics: Metrics;
  /** Limits of the tenants. Undefined if there are none. */
  readonly limits?: RunLimits;
  /** How attributes of spans become fields of runs. Undefined for the default mapping. */
  readonly mapping?: SpanMapping;
  /** Selects the spans of a request to store. Maps each selected span to the span that is stored. Undefined if all are stored. */
  readonly select?: (spans: readonly SpanLike[]) => ReadonlyMap<SpanLike, SpanLike>;
  /** Time in which a store that is ready answers, in milliseconds. */
  readonly readyMs?: number;
  /** Called after the store has applied the operations in a request. */
  readonly received?: (request: IncomingMessage, operations: readonly RunOperation[]) => void;
  readonly status?: () => Promise<StoreStatus>;
  /** Returns the names of the tenants. Undefined if there are none. */
  readonly tenants?: () => readonly string[];
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS';
  /** URL path of the route. Segments that start with `:` are parameters. */
  readonly path: string;
  /** @default 'read' */
  readonly admission?: Admission;
  /** Whether pages of `allowedOrigins` may send the request. */
  readonly isForPages?: true;
  /** Handles a request. Throws an HttpError to send an error response. */
  readonly handle: (call: Call) => RouteResponse | Promise<RouteResponse>;
}

export function get(path: string, handle: Route['handle'], admission?: Admission): Route {
  return { method: 'GET', path, handle, ...(admission && { admission }) };
}

/** Returns an id from the URL path, in lower case with hyphens. Throws an HTTP 422 error if the id is not a UUID. */
export function idOf({ parameters }: Call, name = 'id'): string {
  return validated(uuidSchema(true), parameters[name], ['path', name]);
}

/** Parses a JSON body. Throws HTTP errors: 415 for another type, 400 for invalid JSON, 413 if it is too large. */
export async function readJson({ request, bodies, scope }: Call, bytesMax?: number): Promise<unknown> {
  checkJsonType(request);
  return bodies.read(request, scope.tenant, (body) => new JsonReader().parse(body, 'The body').value, bytesMax);
}

/** Throws an HTTP 415 error if the request's `Content-Type` is not JSON. */
export function checkJsonType({ headers }: IncomingMessage): void {
  const contentType = headers['content-type'] ?? '';
  if (/^application\/json\s*(;|$)/i.test(contentType)) return;
  throw new HttpError(415, `Expected content-type to be application/json, got ${JSON.stringify(contentType)}`);
}
