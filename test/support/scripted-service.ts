import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import zlib from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { listen } from './listen.ts';
import { readParts } from './multipart-reader.ts';
import { requestBody } from './request-body.ts';
import { readSpans } from './span-reader.ts';
import { virtualClock } from './virtual-timers.ts';

export interface Arrival {
  readonly op: 'post' | 'patch';
  readonly id: string;
  readonly name: string;
  readonly isEnded: boolean;
  /** All fields, payloads included. */
  readonly fields: Partial<RunRecord>;
  readonly attachments: ReadonlyMap<string, Buffer>;
}

export interface IngestRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly plainBytes: number;
  readonly atMs: number;
  readonly isMultipart: boolean;
  readonly arrivals: readonly Arrival[];
  /** `start`, `whole` or `end`, and the name of the run, for each arrival in order. */
  readonly names: readonly string[];
}

export interface ServiceResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** `hold` sends no response, `reset` resets the connection, and a function writes to the socket instead. */
export type Verdict = number | ServiceResponse | 'hold' | 'reset' | ((socket: Socket) => unknown);

export type Reply = (request: IngestRequest, index: number) => Verdict | Promise<Verdict>;

export type ServiceInfo = Exclude<Verdict, (socket: Socket) => unknown> | (() => Verdict | Promise<Verdict>);

export interface ScriptedService {
  readonly url: string;
  readonly requests: readonly IngestRequest[];
  /** `names` of each request. */
  readonly batches: readonly (readonly string[])[];
  /** `METHOD path` of each request, without ids. */
  readonly routes: readonly string[];
  /** Returns the records of the run with this name, in the order of their arrival. */
  arrivals(name: string): Arrival[];
  readonly infoRequests: number;
  /** The responses to the next requests. Tests may replace it. */
  reply: Reply;
  /** Resets the connections of the next `times` requests after `bytes` bytes of the body. */
  cut: { readonly bytes: number; times: number };
}

/** Counts events on sockets, so that a test can wait until there are no more. */
export const traffic = { count: 0 };

export async function scriptedService(reply: Reply = () => 202, info: ServiceInfo = 404): Promise<ScriptedService> {
  const requests: IngestRequest[] = [];
  let infoRequests = 0;
  const server = createServer(async (message, response) => {
    traffic.count++;
    let bytes = 0;
    message.on('data', (chunk: Buffer) => {
      traffic.count++;
      bytes += chunk.length;
      if (bytes < service.cut.bytes || service.cut.times === 0) return;
      service.cut.times--;
      message.socket.resetAndDestroy();
    });
    response.on('close', () => traffic.count++);
    const raw = await requestBody(message);
    if (raw === undefined) return;
    const { method = '', url: path = '', headers } = message;
    if (path.endsWith('/info')) {
      infoRequests++;
      // Later requests open a new connection.
      response.setHeader('connection', 'close');
      return respond(response, typeof info === 'function' ? await info() : info);
    }
    const body = decoded(headers['content-encoding'], raw);
    const isMultipart = path.endsWith('/runs/multipart');
    const arrivals = isMultipart
      ? partsOf({ headers, body })
      : path.endsWith('/v1/traces')
        ? spansIn(body)
        : [toArrival(method === 'POST' ? 'post' : 'patch', JSON.parse(body.toString()), new Map())];
    const names = arrivals.map((arrival) => `${kindOf(arrival)} ${arrival.name}`);
    const plainBytes = body.length;
    const atMs = virtualClock.nowMs;
    const request = { method, path, headers, body: raw, plainBytes, atMs, isMultipart, arrivals, names };
    requests.push(request);
    respond(response, await service.reply(request, requests.length - 1));
  });
  server.on('connection', () => traffic.count++);
  const url = await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const service: ScriptedService = {
    url,
    requests,
    get batches() {
      return requests.map(({ names }) => names);
    },
    get routes() {
      return requests.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f]{8}-.*/, '')}`);
    },
    arrivals: (name) => requests.flatMap(({ arrivals }) => arrivals).filter((arrival) => arrival.name === name),
    get infoRequests() {
      return infoRequests;
    },
    reply,
    cut: { bytes: Number.POSITIVE_INFINITY, times: 0 },
  };
  return service;
}

function decoded(encoding: string | undefined, body: Buffer): Buffer {
  if (encoding === undefined) return body;
  const { gunzipSync, zstdDecompressSync } = zlib as typeof zlib & { zstdDecompressSync(body: Buffer): Buffer };
  return encoding === 'zstd' ? zstdDecompressSync(body) : gunzipSync(body);
}

function respond(response: ServerResponse, verdict: Verdict): void {
  traffic.count++;
  if (verdict === 'hold') return;
  if (verdict === 'reset') return void response.socket?.resetAndDestroy();
  if (typeof verdict === 'function') return void (response.socket && verdict(response.socket));
  const { status, headers = {}, body = '{}' } = typeof verdict === 'number' ? { status: verdict } : verdict;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(status === 204 ? '' : body);
}

function kindOf({ op, isEnded }: Arrival): string {
  if (op === 'patch') return 'end';
  return isEnded ? 'whole' : 'start';
}

function partsOf(request: { headers: IncomingHttpHeaders; body: Buffer }): Arrival[] {
  const arrivals = new Map<string, { fields: Record<string, unknown>; attachments: Map<string, Buffer> }>();
  const attached: [id: string, name: string, bytes: Buffer][] = [];
  for (const { name, body } of readParts(request)) {
    const [, op = '', id = '', rest] = /^(\w+)\.([^.]+)(?:\.(.*))?$/s.exec(name) ?? [];
    if (op === 'attachment') attached.push([id, rest ?? '', body]);
    else if (rest === undefined)
      arrivals.set(`${op}.${id}`, { fields: JSON.parse(body.toString()), attachments: new Map() });
    else Object.assign(arrivals.get(`${op}.${id}`)?.fields ?? {}, { [rest]: JSON.parse(body.toString()) });
  }
  for (const [id, name, bytes] of attached)
    (arrivals.get(`post.${id}`) ?? arrivals.get(`patch.${id}`))?.attachments.set(name, bytes);
  return [...arrivals].map(([key, { fields, attachments }]) =>
    toArrival(key.startsWith('post') ? 'post' : 'patch', fields, attachments),
  );
}

/** The arrival of an incomplete run has not ended. */
function spansIn(body: Buffer): Arrival[] {
  return readSpans(body).map(({ record, isIncomplete }) => {
    const { end_time, ...open } = record;
    return toArrival('post', isIncomplete ? open : record, new Map());
  });
}

function toArrival(op: Arrival['op'], fields: Partial<RunRecord>, attachments: Map<string, Buffer>): Arrival {
  const { id = '', name = '', end_time } = fields;
  return { op, id, name, isEnded: end_time !== undefined, fields, attachments };
}
