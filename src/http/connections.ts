/// <reference path="./undici-files.d.ts" />
import type { Socket } from 'node:net';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import { isLoopback } from '../config/checker.ts';
import { type EnvironmentName, env } from '../config/environment.ts';
import { complain } from '../config/variables.ts';
import { nodeModule, runtime, types } from '../platform/node.ts';
import { SetupError } from './errors.ts';
import { markProxyError } from './failure.ts';

export interface ConnectionOptions {
  readonly endpoint: URL;
  readonly connectTimeoutMs?: number | undefined;
  readonly requestTimeoutMs: number;
  readonly proxies?: Proxies | undefined;
  /**
   * Whether pending requests keep the process alive.
   * @default false
   */
  readonly holdsProcess?: boolean;
}

export async function createConnections(options: ConnectionOptions): Promise<Dispatcher> {
  const { buildConnector, Pool, ProxyAgent, api }: Undici = await loadUndici().catch(() => import('undici'));
  // On Bun, undici's classes have no methods.
  if (typeof Pool?.prototype?.dispatch !== 'function') {
    throw new SetupError(
      'the undici of this runtime cannot send requests, so delivery is off; use Node.js 20.19 or later',
    );
  }
  const { endpoint, connectTimeoutMs = 5_000, requestTimeoutMs, proxies, holdsProcess = false } = options;
  const timeouts = { headersTimeout: requestTimeoutMs, bodyTimeout: requestTimeoutMs };
  const connect = buildConnector({ timeout: connectTimeoutMs });
  const poolOf = (origin: string | URL, given: object, isToProxy = false): Pool => {
    const pool = given as Pool.Options;
    const connector = watched(pool.connect as buildConnector.connector, { isToProxy, holdsProcess });
    return Object.assign(new Pool(origin, { ...pool, connect: connector }), api);
  };
  const proxy = proxyFor(endpoint, proxies);
  if (typeof proxy === 'string') return poolOf(endpoint.origin, { ...timeouts, connect });
  const tls = { timeout: connectTimeoutMs };
  const agent = new ProxyAgent({
    ...timeouts,
    uri: proxy.address,
    proxyTls: tls,
    requestTls: tls,
    factory: (origin: string | URL, pool: object) => poolOf(origin, pool),
    // Applies the timeouts to the proxy. By default, undici waits 5 minutes for a proxy's response.
    clientFactory: (origin: URL, pool: object) => poolOf(origin, { ...timeouts, ...pool }, true),
  });
  return Object.assign(agent, api);
}

/** `api` has the methods that only undici as a whole adds to its dispatchers. */
type Undici = Pick<typeof import('undici'), 'buildConnector' | 'Pool' | 'ProxyAgent'> & { readonly api?: object };

/**
 * Loads what connections need of undici in parts, which each take a few milliseconds, with a pause before each. Undici
 * as a whole takes tens of milliseconds, and then sends the requests of the global `fetch`.
 */
export async function loadUndici(pause: () => unknown = () => undefined): Promise<Undici> {
  const part = async <Part>(load: () => Part | Promise<Part>): Promise<Part> => {
    await pause();
    return load();
  };
  await part(() => nodeModule('node:http'));
  await part(() => nodeModule('node:tls'));
  const { default: buildConnector } = await part(() => import('undici/lib/core/connect.js'));
  await part(() => import('undici/lib/dispatcher/client.js'));
  const { default: Pool } = await part(() => import('undici/lib/dispatcher/pool.js'));
  const { default: ProxyAgent } = await part(() => import('undici/lib/dispatcher/proxy-agent.js'));
  const { default: api } = await part(() => import('undici/lib/api/index.js'));
  return { buildConnector, Pool, ProxyAgent, api };
}

/** Errors on connections that had already received data. */
const reusedConnectionErrors = new WeakSet<Error>();

/**
 * Whether the service closed a keep-alive connection just before a request reused the connection. A connection that
 * closes at this moment does not mean that the service is unavailable.
 */
export function isReusedConnectionError(error: unknown): boolean {
  if (!types.isNativeError(error)) return false;
  const { code, socket } = error as { code?: string; socket?: { bytesRead?: number } | null };
  if (code === 'UND_ERR_SOCKET') return (socket?.bytesRead ?? 0) > 0;
  return (code === 'ECONNRESET' || code === 'EPIPE') && reusedConnectionErrors.has(error);
}

/**
 * Wraps a connector. Sockets do not keep the process alive, unless `holdsProcess` is set.
 *
 * If a proxy closes each connection immediately, undici reconnects in a tight loop. To prevent this loop, the next
 * attempt fails if the proxy closed the last connection without sending data.
 */
function watched(
  connect: buildConnector.connector,
  { isToProxy, holdsProcess }: { readonly isToProxy: boolean; readonly holdsProcess: boolean },
): buildConnector.connector {
  let hasClosedEmpty = false;
  return (options, callback) => {
    if (isToProxy && hasClosedEmpty) {
      hasClosedEmpty = false;
      const error = Object.assign(new Error('the proxy closed the connection'), { code: 'ECONNRESET' });
      markProxyError(error);
      queueMicrotask(() => callback(error, null));
      return;
    }
    // `connect` returns a socket, or a promise if a proxy must first open a tunnel. undici's type declaration omits the
    // return value.
    const socket = connect(options, (...result) => {
      const [error, connected] = result;
      if (connected) watch(connected, holdsProcess);
      else if (isToProxy && error) markProxyError(error);
      if (isToProxy) {
        connected?.once('close', () => {
          hasClosedEmpty = connected.bytesRead === 0;
        });
      }
      callback(...result);
    }) as unknown as Socket | Promise<void>;
    if ('unref' in socket) watch(socket, holdsProcess);
  };
}

const watchedSockets = new Set<Socket>();

/** Whether a socket has not passed all that was written to it to the operating system. */
export function isWriting(): boolean {
  for (const { writableLength } of watchedSockets) if (writableLength > 0) return true;
  return false;
}

function watch(socket: Socket, holdsProcess: boolean): void {
  if (watchedSockets.has(socket)) return;
  watchedSockets.add(socket);
  socket.once('close', () => watchedSockets.delete(socket));
  if (!holdsProcess) {
    socket.unref();
    // undici calls `ref` for each request on a keep-alive socket. `ref` is disabled, so that a pending request does not
    // keep the process alive.
    socket.ref = () => socket;
  }
  socket.on('error', (error) => {
    if (socket.bytesRead > 0) reusedConnectionErrors.add(error);
  });
}

export interface NamedProxy {
  readonly address: string;
  readonly variable: EnvironmentName;
}

export interface Proxies {
  /** Proxy for HTTP endpoints. Also used for HTTPS endpoints if `https` is undefined. */
  readonly http: NamedProxy | undefined;
  readonly https: NamedProxy | undefined;
  /** Hosts to connect to without a proxy, in the format of `NO_PROXY`. */
  readonly except: string;
}

export type NoProxy = 'none is named' | 'this machine' | 'an exception';

/**
 * Returns the proxies from environment variables. Lower-case variable names take precedence, as in curl. Warnings never
 * contain a value, because the URL of a proxy may contain credentials.
 */
export function environmentProxies(): Proxies | undefined {
  // On other runtimes, the proxies have no effect.
  if (runtime.runtime !== 'node') return undefined;
  const http = proxyOf('http_proxy', 'HTTP_PROXY');
  const https = proxyOf('https_proxy', 'HTTPS_PROXY');
  if (http === undefined && https === undefined) return undefined;
  const except = env('no_proxy') ?? env('NO_PROXY') ?? '';
  const anywhere = new URL('http://localhost');
  const unknown = entriesOf(except).flatMap((entry, at) => (covers(entry, anywhere) === undefined ? at + 1 : []));
  if (unknown.length > 0) {
    const numbers = unknown.join(', ');
    complain(`expected NO_PROXY to list host names, addresses and ranges; ignored entries: ${numbers}`, 'proxy');
  }
  return { http, https, except };
}

export function proxyFor(endpoint: URL, proxies: Proxies | undefined): NamedProxy | NoProxy {
  const { http, https } = proxies ?? {};
  const named = endpoint.protocol === 'https:' ? (https ?? http) : http;
  if (proxies === undefined || named === undefined) return 'none is named';
  if (isLoopback(endpoint.hostname)) return 'this machine';
  return entriesOf(proxies.except).some((entry) => covers(entry, endpoint)) ? 'an exception' : named;
}

const entriesOf = (except: string): string[] => except.split(/[,\s]+/).filter((entry) => entry !== '');

/**
 * Whether an entry of `NO_PROXY` excludes an endpoint from the proxy. `*` matches all hosts, a host name also its
 * subdomains, and an address or a range such as `10.0.0.0/8` each way to write an address. Returns undefined if the entry
 * is none of these.
 */
function covers(entry: string, { hostname, port, protocol }: URL): boolean | undefined {
  const { BlockList, isIP } = nodeModule('node:net');
  const [, host = entry, portMeant] = (isIP(entry) === 6 ? null : /^(.+):(\d+)$/.exec(entry)) ?? [];
  const portAsked = port || (protocol === 'https:' ? '443' : '80');
  const isPort = Number(portMeant ?? portAsked) === Number(portAsked);
  if (host === '*') return isPort;
  const [, address = '', bits] = /^\[?([^[\]%/]+)\]?(?:\/(\d+))?$/.exec(host) ?? [];
  const version = isIP(address);
  if (version === 0) {
    const name = `http://${host.replace(/^\*?\./, '')}`;
    if (!NAME.test(name) || !URL.canParse(name)) return undefined;
    return isPort && `.${hostname}`.endsWith(`.${new URL(name).hostname}`);
  }
  const bitsMax = version === 6 ? 128 : 32;
  if (Number(bits) > bitsMax) return undefined;
  const range = new BlockList();
  range.addSubnet(address, Number(bits ?? bitsMax), version === 6 ? 'ipv6' : 'ipv4');
  const asked = hostname.replace(/^\[|\]$/g, '');
  return isPort && isIP(asked) > 0 && range.check(asked, isIP(asked) === 6 ? 'ipv6' : 'ipv4');
}

/** Matches a host name whose last label is no number. */
const NAME = /^http:\/\/(?!(?:.*\.)?\d+\.?$)[\w.\u0080-\uffff-]+$/;

function proxyOf(...names: readonly EnvironmentName[]): NamedProxy | undefined {
  const variable = names.find((candidate) => env(candidate) !== undefined);
  if (variable === undefined) return undefined;
  const text = env(variable) ?? '';
  const address = text.includes('://') ? text : `http://${text}`;
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return { address, variable };
  complain(`${variable} is not an http or https URL; the proxy is not used`, 'proxy');
  return undefined;
}
