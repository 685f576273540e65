import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { diagnostics } from '../base/diagnostics.ts';
import { RunspanError } from '../base/errors.ts';
import { messageOf } from '../base/text.ts';
import { Refusal } from './refusal.ts';
import type { Answer } from './route.ts';
import type { Routes } from './routes.ts';

/** How long a client may take for its header, and for the whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** How long a connection may go on without a byte either way: who asks and does not read would have the answer held for ever. */
const IDLE_TIMEOUT_MS = 120_000;
const HEADER_BYTES_MAX = 16 * 1024;
const CONNECTIONS_MAX = 1_000;
/** How long `close` waits for requests at hand. */
const CLOSE_MS = 2_000;

/**
 * Goes with every answer: that it is JSON whatever it looks like, that pages of other origins may not have it, that it
 * may load and frame nothing should a browser show it, and that nobody keeps it.
 */
const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
};

/** A server that listens. */
export interface Listening {
  readonly url: string;
  close(): Promise<void>;
}

/** Listens, or rejects with a RunspanError that says why it cannot and what to do. */
export async function listen(routes: Routes, host: string, port: number): Promise<Listening> {
  const requests = new Set<IncomingMessage>();
  const ending = new AbortController();
  const server = createServer(
    { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, maxHeaderSize: HEADER_BYTES_MAX },
    (request, response) => {
      requests.add(request);
      response.on('close', () => {
        requests.delete(request);
        if (!server.listening) endUnused(server, requests);
      });
      void respond(server, routes, request, response, ending.signal);
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  server.timeout = IDLE_TIMEOUT_MS;
  server.on('clientError', refuseUnparsed);
  await bind(server, host, port);

  let closing: Promise<void> | undefined;
  return {
    url: urlOf(server.address() as AddressInfo),
    close: () => {
      ending.abort();
      closing ??= close(server, requests);
      return closing;
    },
  };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on('error', (error: NodeJS.ErrnoException) => {
      // Later ones are of single connections, for example without a free file descriptor.
      if (server.listening) diagnostics.error(`the receiver could not take a connection: ${messageOf(error)}`);
      else reject(listenError(error, host, port));
    });
    server.listen(port, host, resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): RunspanError {
  if (error.code === 'EADDRINUSE') {
    const message = `Port ${port} on ${host} is in use: end the program that holds it, or choose another \`port\` (0 takes a free one)`;
    return new RunspanError('RUNSPAN_ADDRESS_IN_USE', message, { cause: error });
  }
  const message = `Cannot listen on ${host}, port ${port}: ${messageOf(error)}; choose another \`host\` or \`port\``;
  return new RunspanError('RUNSPAN_LISTEN_FAILED', message, { cause: error });
}

/** Of all addresses together none is one that a client can be given. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (family === 'IPv6') return `http://[${address === '::' ? '::1' : address}]:${port}`;
  return `http://${address === '0.0.0.0' ? '127.0.0.1' : address}:${port}`;
}

async function close(server: Server, requests: ReadonlySet<IncomingMessage>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  endUnused(server, requests);
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  await closed;
  clearTimeout(timer);
}

/** An end waits for requests, not for connections: those that are kept alive, or never said a word, would last. */
function endUnused(server: Server, requests: ReadonlySet<IncomingMessage>): void {
  if (requests.size === 0) server.closeAllConnections();
}

async function respond(
  server: Server,
  routes: Routes,
  request: IncomingMessage,
  response: ServerResponse,
  ending: AbortSignal,
): Promise<void> {
  const { status, headers, content } = await contentOf(routes, request);
  const last = server.listening ? {} : { connection: 'close' };
  if (typeof content !== 'function') {
    const bytes = Buffer.from(content);
    response.writeHead(status, { ...HEADERS, 'content-length': bytes.length, ...last, ...headers });
    response.end(bytes);
    return;
  }
  response.writeHead(status, { ...HEADERS, ...last, ...headers });
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  try {
    await pipeline(content(AbortSignal.any([ending, gone.signal])), response);
  } catch (error) {
    // Of those who have gone away there is nothing to tell.
    if (!gone.signal.aborted) tellFailure(error);
    response.destroy();
  }
}

/** The answer as it goes out. What cannot be written as JSON, being too long for a text, has failed like anything else. */
async function contentOf(
  routes: Routes,
  request: IncomingMessage,
): Promise<Answer & Pick<Required<Answer>, 'content'>> {
  try {
    const answer = await routes(request);
    return { ...answer, content: answer.content ?? JSON.stringify(answer.body) };
  } catch (error) {
    const answer = refusalOf(error);
    return { ...answer, content: JSON.stringify(answer.body) };
  }
}

function refusalOf(error: unknown): Answer {
  if (error instanceof Refusal) return { status: error.status, body: { detail: error.detail }, headers: error.headers };
  tellFailure(error);
  return { status: 500, body: { detail: 'The receiver failed; its log says why' } };
}

function tellFailure(error: unknown): void {
  diagnostics.error(`the receiver could not answer a request: ${messageOf(error)}`);
}

const UNPARSED: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Answers what never became a request. */
function refuseUnparsed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = UNPARSED[error.code ?? ''] ?? '400 Bad Request';
  const body = JSON.stringify({ detail: `The request cannot be read: ${messageOf(error)}` });
  const headers = { ...HEADERS, connection: 'close', 'content-length': Buffer.byteLength(body) };
  const lines = [`HTTP/1.1 ${status}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
