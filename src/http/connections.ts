import type { Socket } from 'node:net';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import { type Proxies, proxyFor } from './proxies.ts';

export interface ConnectionOptions {
  readonly endpoint: URL;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Those of which one may lead to the endpoint. */
  readonly proxies?: Proxies | undefined;
}

/** What sends requests to the endpoint over connections that are kept, and that never keep the process alive. */
export async function createConnections(options: ConnectionOptions): Promise<Dispatcher> {
  const { buildConnector, Pool, ProxyAgent } = await import('undici');
  const { endpoint, connectTimeoutMs, requestTimeoutMs, proxies } = options;
  const timeouts = { headersTimeout: requestTimeoutMs, bodyTimeout: requestTimeoutMs };
  const connect = buildConnector({ timeout: connectTimeoutMs });
  const poolOf = (origin: string | URL, given: object, isToProxy = false): Pool => {
    const pool = given as Pool.Options;
    return new Pool(origin, { ...pool, connect: unreferenced(pool.connect as buildConnector.connector, isToProxy) });
  };
  const proxy = proxyFor(endpoint, proxies);
  if (typeof proxy === 'string') return poolOf(endpoint.origin, { ...timeouts, connect });
  const tls = { timeout: connectTimeoutMs };
  return new ProxyAgent({
    ...timeouts,
    uri: proxy.address,
    proxyTls: tls,
    requestTls: tls,
    factory: (origin: string | URL, pool: object) => poolOf(origin, pool),
    // Without these a proxy that hangs would be waited for by the default of undici, five minutes.
    clientFactory: (origin: URL, pool: object) => poolOf(origin, { ...timeouts, ...pool }, true),
  });
}

/** Errors of connections over which an answer had come before. */
const errorsOfUsed = new WeakSet<Error>();

/**
 * Whether a request failed because the service had closed the connection that was kept since an earlier one, which
 * both sides may do at the same moment, and which says nothing about the service.
 */
export function isOfUsedConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, socket } = error as { code?: string; socket?: { bytesRead?: number } | null };
  if (code === 'UND_ERR_SOCKET') return (socket?.bytesRead ?? 0) > 0;
  return (code === 'ECONNRESET' || code === 'EPIPE') && errorsOfUsed.has(error);
}

const errorsOfProxies = new WeakSet<Error>();

/** Whether a request failed because there was no connection to the proxy. */
export function isOfProxy(error: unknown): boolean {
  return error instanceof Error && errorsOfProxies.has(error);
}

/**
 * Makes the sockets of a connector let the process end. undici refs a kept-alive socket again for each request, so
 * `ref` has to do nothing: a hanging service would otherwise hold an application that has finished.
 */
function unreferenced(connect: buildConnector.connector, isToProxy: boolean): buildConnector.connector {
  return (options, callback) => {
    // The declaration leaves out that the connector gives back the socket at once (undici lib/core/connect.js), and that
    // of a proxy a promise, and the socket when the proxy has answered.
    const socket = connect(options, (...result) => {
      // After an error undici leaves it out.
      if (result[1]) release(result[1]);
      else if (isToProxy && result[0]) errorsOfProxies.add(result[0]);
      callback(...result);
    }) as unknown as Socket | Promise<void>;
    if ('unref' in socket) release(socket);
    return socket;
  };
}

const released = new WeakSet<Socket>();

function release(socket: Socket): void {
  if (released.has(socket)) return;
  released.add(socket);
  socket.unref();
  socket.ref = () => socket;
  socket.on('error', (error) => {
    if (socket.bytesRead > 0) errorsOfUsed.add(error);
  });
}
