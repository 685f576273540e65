import { createServer, type IncomingMessage, type Server } from 'node:http';
import { onTestFinished } from 'vitest';
import { closeServer, listen } from './listen.ts';
import { requestBody } from './request-body.ts';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

export interface IngestServer {
  readonly url: string;
  /** All requests except `GET /info`. */
  readonly received: readonly Received[];
  /** Number of `GET /info` requests. Each exporter sends one. */
  readonly infos: number;
  /** Resolves when `count` requests have arrived. */
  arrived(count: number): Promise<void>;
  /** Closes all connections, as services do with idle connections. New connections are accepted. */
  disconnect(): void;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `hold` sends no response and keeps the connection open until the server closes. */
export type Reply = Answer | 'hold';

/** Starts a service on a free port. By default, it accepts all runs and has no `/info`. */
export async function ingestServer(
  reply: (request: Received, index: number) => Reply | Promise<Reply> = () => ({ status: 202 }),
  info: Answer = { status: 404 },
  port = 0,
): Promise<IngestServer> {
  const received: Received[] = [];
  let infos = 0;
  const waiting: { count: number; resolve: () => void }[] = [];
  const server: Server = createServer(async (message, response) => {
    const request = await read(message);
    if (request === undefined) return;
    if (request.path.endsWith('/info')) {
      infos++;
      return answer(info);
    }
    received.push(request);
    const index = received.length - 1;
    for (const { count, resolve } of waiting) if (received.length >= count) resolve();
    const given = await reply(request, index);
    if (given !== 'hold') answer(given);

    function answer({ status, headers = {}, body = '{}' }: Answer): void {
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
    }
  });
  const url = await listen(server, port);
  const close = (): Promise<void> => closeServer(server);
  return {
    url,
    received,
    get infos() {
      return infos;
    },
    arrived: (count) =>
      received.length >= count
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.push({ count, resolve });
          }),
    disconnect: () => server.closeAllConnections(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Starts a service like `ingestServer`, which is closed when the test has finished. */
export async function ingestServerInTest(...given: Parameters<typeof ingestServer>): Promise<IngestServer> {
  const server = await ingestServer(...given);
  onTestFinished(server.close);
  return server;
}

async function read(message: IncomingMessage): Promise<Received | undefined> {
  const body = await requestBody(message);
  if (body === undefined) return undefined;
  return { method: message.method ?? '', path: message.url ?? '', headers: message.headers, body };
}
