import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { shown } from '../base/text.ts';
import type { Access, Admission } from './access.ts';
import type { Faults } from './faults.ts';
import { JsonReader } from './ingest/json.ts';
import type { RequestBodies } from './ingest/request-body.ts';
import { parseUuid } from './ingest/run-fields.ts';
import type { SpanRuns } from './otlp/span-runs.ts';
import { Refusal } from './refusal.ts';
import type { Store } from './store/store.ts';

/** What a request is answered with: a `body` as JSON, or `content` of the type that its headers name. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Bytes, text, or text that goes out piece by piece; the signal is aborted when nobody listens any more. */
  readonly content?: Uint8Array | string | ((ended: AbortSignal) => AsyncIterable<string>);
}

/** A request on its way to its answer. */
export interface Call {
  readonly request: IncomingMessage;
  /** The named groups of the route's path, decoded. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly search: URLSearchParams;
  readonly bodies: RequestBodies;
  readonly store: Store;
  readonly faults: Faults;
  readonly access: Access;
  readonly spanRuns: SpanRuns;
  /** Connections with an open change stream. */
  readonly streams: Set<Socket>;
  readonly strict: boolean;
}

/** One endpoint. It answers a call or throws a Refusal. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS';
  readonly path: RegExp;
  /** @default 'key' */
  readonly admission?: Admission;
  readonly handle: (call: Call) => Answer | Promise<Answer>;
}

/** The id in the path, in the one spelling; 422 for what is none. */
export function idOf({ parameters: { id = '' } }: Call): string {
  const found = parseUuid(id, true);
  if (found !== undefined) return found;
  throw new Refusal(422, [{ loc: ['path', 'id'], msg: `Expected a UUID, got ${shown(id)}`, type: 'uuid' }]);
}

/** The value of a body of JSON: 415 for another type, 400 for what is none, 413 beyond so many bytes. */
export async function readJson({ request, bodies }: Call, bytesMax?: number): Promise<unknown> {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(contentType)) {
    throw new Refusal(415, `Expected content-type to be application/json, got ${JSON.stringify(contentType)}`);
  }
  return bodies.read(request, (body) => new JsonReader().parse(body, 'The body'), bytesMax);
}
