import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import zlib from 'node:zlib';
import { type Arrival, arrivalsIn } from './arrivals.ts';
import { listenInTest } from './listen-in-test.ts';
import { requestBody } from './request-body.ts';
import { virtualClock } from './virtual-timers.ts';

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
    const arrivals = arrivalsIn({ method, path, headers, body }).map(withoutIncompleteEnd);
    const names = arrivals.map((arrival) => `${kindOf(arrival)} ${arrival.name}`);
    const plainBytes = body.length;
    const atMs = virtualClock.nowMs;
    const request = { method, path, headers, body: raw, plainBytes, atMs, isMultipart, arrivals, names };
    requests.push(request);
    respond(response, await service.reply(request, requests.length - 1));
  });
  server.on('connection', () => traffic.count++);
  const url = await listenInTest(server);
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

/** A span of an incomplete run has an end, but the run has not ended. */
function withoutIncompleteEnd(arrival: Arrival): Arrival {
  return arrival.op === 'span' && arrival.isIncomplete ? { ...arrival, isEnded: false } : arrival;
}

function kindOf({ op, isEnded }: Arrival): string {
  if (op === 'patch') return 'end';
  return isEnded ? 'whole' : 'start';
}
