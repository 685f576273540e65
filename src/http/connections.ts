import type { Socket } from 'node:net';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import { type Proxies, proxyFor } from './proxies.ts';
import { SetupError } from './setup-error.ts';

export interface ConnectionOptions {
  readonly endpoint: URL;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Those of which one may lead to the endpoint. */
  readonly proxies?: Proxies | undefined;
  /** Connections keep the process alive while a request is under way; else they never do. */
  readonly holdsProcess?: boolean;
}

/** What sends requests to the endpoint over connections that are kept. */
export async function createConnections(options: ConnectionOptions): Promise<Dispatcher> {
  const { buildConnector, Pool, ProxyAgent } = await import('undici');
  // Bun replaces undici with stub classes that have no methods.
  if (typeof Pool?.prototype?.dispatch !== 'function') {
    throw new SetupError(
      'the undici of this runtime cannot send requests, so delivery is off; use Node.js 20.19 or later',
    );
  }
  const { endpoint, connectTimeoutMs, requestTimeoutMs, proxies, holdsProcess = false } = options;
  const timeouts = { headersTimeout: requestTimeoutMs, bodyTimeout: requestTimeoutMs };
  const connect = buildConnector({ timeout: connectTimeoutMs });
  const poolOf = (origin: string | URL, given: object, isToProxy = false): Pool => {
    const pool = given as Pool.Options;
    const connector = pool.connect as buildConnector.connector;
    return new Pool(origin, { ...pool, connect: watched(connector, { isToProxy, holdsProcess }) });
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

/** Makes the sockets of a connector let the process end, unless they are to hold it, and takes note of their errors. */
function watched(
  connect: buildConnector.connector,
  { isToProxy, holdsProcess }: { readonly isToProxy: boolean; readonly holdsProcess: boolean },
): buildConnector.connector {
  return (options, callback) => {
    // The declaration leaves out that the connector gives back the socket at once (undici lib/core/connect.js), and that
    // of a proxy a promise, and the socket when the proxy has answered.
    const socket = connect(options, (...result) => {
      // After an error undici leaves it out.
      if (result[1]) watch(result[1], holdsProcess);
      else if (isToProxy && result[0]) errorsOfProxies.add(result[0]);
      callback(...result);
    }) as unknown as Socket | Promise<void>;
    if ('unref' in socket) watch(socket, holdsProcess);
    return socket;
  };
}

const seen = new WeakSet<Socket>();

function watch(socket: Socket, holdsProcess: boolean): void {
  if (seen.has(socket)) return;
  seen.add(socket);
  if (!holdsProcess) {
    socket.unref();
    // undici refs a kept-alive socket again for each request: a hanging service would hold an application that has finished.
    socket.ref = () => socket;
  }
  socket.on('error', (error) => {
    if (socket.bytesRead > 0) errorsOfUsed.add(error);
  });
}
