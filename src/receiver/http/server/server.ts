import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { diagnostics } from '../../../base/diagnostics.ts';
import { RunspanError } from '../../../base/errors.ts';
import { messageOf } from '../../../base/text.ts';
import { exactJson } from '../../../payload/fields.ts';
import { allowListeners } from '../../../platform/node.ts';
import { clearTimer, setTimer } from '../../../platform/timers.ts';
import { HttpError, toHttpError } from '../http-error.ts';
import type { RouteResponse } from '../route.ts';
import type { Routes } from '../routes.ts';
import { Connections } from './connections.ts';

const HEADERS_TIMEOUT_MS = 10_000;
/** Maximum time to receive a complete request, in milliseconds. A route can remove the time limit. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Maximum time to receive a complete request if its route needs no key, in milliseconds. */
const OPEN_TIMEOUT_MS = 5_000;
/** Closing idle connections frees the memory of responses that no client reads. */
const IDLE_TIMEOUT_MS = 120_000;
/** A filter of 4,000 characters in Chinese has 36,000 bytes in a URL. */
const HEADER_BYTES_MAX = 64 * 1024;
/** Default maximum time that `close` waits for pending requests, in milliseconds. */
const CLOSE_MS = 2_000;

const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
};

export interface ServerLimits {
  readonly requestTimeoutMs?: number;
  readonly openTimeoutMs?: number;
  readonly idleTimeoutMs?: number;
  readonly closeMs?: number;
  readonly connectionsMax?: number;
}

/** Starts an HTTP server. Rejects with a RunspanError if the server cannot listen. */
export async function listen(
  routes: Routes,
  host: string,
  port: number,
  {
    requestTimeoutMs = REQUEST_TIMEOUT_MS,
    openTimeoutMs = OPEN_TIMEOUT_MS,
    idleTimeoutMs = IDLE_TIMEOUT_MS,
    closeMs = CLOSE_MS,
    connectionsMax,
  }: ServerLimits = {},
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const closing = new AbortController();
  allowListeners(closing.signal);
  let pending = 0;
  const connections = new Connections(connectionsMax);
  // `server.close` leaves connections open that never sent a request, so idle connections are ended here.
  const endIdleConnections = (): void => {
    if (closing.signal.aborted && pending === 0) server.closeAllConnections();
  };
  const server = createServer(
    // Node's `requestTimeout` cannot be removed for a single request.
    { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: 0, maxHeaderSize: HEADER_BYTES_MAX },
    (request, response) => {
      const { socket } = request;
      connections.count(socket, 1);
      // Node still parses requests that it read before the connection was closed.
      if (socket.destroyed) return;
      pending += 1;
      let isKnown = false;
      const endIfLate = (): void => {
        if (!request.complete) respondToInvalid(TIMED_OUT, socket);
      };
      let timer = setTimer(endIfLate, requestTimeoutMs);
      const liftTimeout = (): void => clearTimer(timer);
      const admitted = (needsKey: boolean): void => {
        isKnown = needsKey;
        if (isKnown) connections.countKnown(socket, 1);
        else if (!request.complete) {
          liftTimeout();
          timer = setTimer(endIfLate, openTimeoutMs);
        }
      };
      request.on('end', liftTimeout).on('close', liftTimeout);
      const left = new AbortController();
      const ended = (): void => {
        if (left.signal.aborted) return;
        left.abort();
        socket.off('close', ended);
        pending -= 1;
        connections.count(socket, -1);
        if (isKnown) connections.countKnown(socket, -1);
        endIdleConnections();
      };
      response.on('close', ended);
      // On Node 20 and 22, a response that waits for an earlier one does not close with the connection.
      socket.on('close', ended);
      void respond(routes(request, liftTimeout, left.signal, admitted), response, closing.signal, left.signal);
    },
  );
  server.on('connection', (socket) => connections.opened(socket.setMaxListeners(0)));
  server.timeout = idleTimeoutMs;
  server.on('clientError', respondToInvalid);
  await bind(server, host, port);

  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  return {
    url: urlOf(server.address() as AddressInfo),
    close: async () => {
      if (!closing.signal.aborted) {
        closing.abort();
        server.close();
        endIdleConnections();
        const timer = setTimeout(() => server.closeAllConnections(), closeMs);
        server.once('close', () => clearTimeout(timer));
      }
      await closed;
    },
  };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on('error', (error: NodeJS.ErrnoException) => {
      // After the start, an error affects only one connection, for example if no file descriptor is free.
      if (server.listening) diagnostics.error(`the receiver could not accept a connection: ${messageOf(error)}`);
      else reject(listenError(error, host, port));
    });
    server.listen(port, host, resolve);
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): RunspanError {
  if (error.code === 'EADDRINUSE') {
    const message = `Port ${port} on ${host} is in use: stop the program that uses the port, or choose another \`port\` (0 selects a free port)`;
    return new RunspanError('RUNSPAN_ADDRESS_IN_USE', message, { cause: error });
  }
  const message = `Cannot listen on ${host}, port ${port}: ${messageOf(error)}; choose another \`host\` or \`port\``;
  return new RunspanError('RUNSPAN_LISTEN_FAILED', message, { cause: error });
}

/** Replaces an unspecified address such as 0.0.0.0 with the loopback address, so that clients can connect. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (family === 'IPv6') return `http://[${address === '::' ? '::1' : address}]:${port}`;
  return `http://${address === '0.0.0.0' ? '127.0.0.1' : address}:${port}`;
}

async function respond(
  found: Promise<RouteResponse>,
  response: ServerResponse,
  closing: AbortSignal,
  left: AbortSignal,
): Promise<void> {
  const { status, headers, content = '' } = await answer(found);
  const allHeaders = { ...HEADERS, ...(closing.aborted && { connection: 'close' }), ...headers };
  if (typeof content !== 'function') {
    response.writeHead(status, { ...allHeaders, 'content-length': Buffer.byteLength(content) });
    response.end(content);
    return;
  }
  response.writeHead(status, allHeaders);
  // `AbortSignal.any` leaks memory on Node 20 if one of its signals is long-lived.
  const ended = new AbortController();
  const end = (): void => ended.abort();
  closing.addEventListener('abort', end);
  left.addEventListener('abort', end);
  if (closing.aborted || left.aborted) end();
  try {
    await pipeline(content(ended.signal), response, { signal: left });
  } catch (error) {
    if (!ended.signal.aborted) logFailure(error);
    response.destroy();
  } finally {
    closing.removeEventListener('abort', end);
  }
}

/** Returns the response. Serializes `body` to JSON and stores the text in `content`. */
async function answer(found: Promise<RouteResponse>): Promise<RouteResponse> {
  try {
    const response = await found;
    // `JSON.stringify` may throw, for example if the text is too long.
    return { ...response, content: response.content ?? exactJson(response.body) };
  } catch (error) {
    const known = toHttpError(error);
    if (known === undefined) logFailure(error);
    const { status, headers, detail } = known ?? INTERNAL_ERROR;
    return { status, headers, content: JSON.stringify({ detail }) };
  }
}

const INTERNAL_ERROR = new HttpError(500, 'Internal error: see the log of the receiver');

function logFailure(error: unknown): void {
  diagnostics.error(`the receiver could not answer a request: ${messageOf(error)}`);
}

const TIMED_OUT = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });

const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

function respondToInvalid(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = STATUS_LINES[error.code ?? ''] ?? '400 Bad Request';
  const body = JSON.stringify({ detail: `Invalid HTTP request: ${messageOf(error)}` });
  const headers = { ...HEADERS, connection: 'close', 'content-length': Buffer.byteLength(body) };
  const lines = [`HTTP/1.1 ${status}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
