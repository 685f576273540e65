import type { ClientRequest } from 'node:http';
import { guard } from '../base/guard.ts';
import { isAtLeast } from '../base/version.ts';
import { isLoopback } from '../config/checker.ts';
import { replaceMethod } from '../instrument/methods.ts';
import { channel, nodeModule } from '../platform/node.ts';

const PLACE = 'runspan/register http';
/** The first version of Node that publishes each new request. */
const CHANNEL_MIN = [22, 12] as const;

type Observer = (request: ClientRequest) => void;

const observers: Observer[] = [];

/**
 * Calls `observe` with each request of `node:http` and `node:https` before its headers are sent. Not called for a
 * request whose headers are given as an array or contain `expect`, because Node then encodes the headers at once.
 */
export function onHttpRequest(observe: Observer): void {
  observers.push(observe);
  if (observers.length > 1) return;
  // The channel does not load `node:http`, which takes 5 ms.
  if (isAtLeast(process.versions.node, CHANNEL_MIN)) {
    channel('http.client.request.created').subscribe((message) =>
      notify((message as { readonly request: ClientRequest }).request),
    );
    return;
  }
  replaceMethod(PLACE, nodeModule('node:http').ClientRequest.prototype, '_implicitHeader', (method) => {
    return function (this: unknown, ...args: unknown[]): unknown {
      notify(this as ClientRequest);
      return Reflect.apply(method, this, args);
    };
  });
}

function notify(request: ClientRequest): void {
  for (const observe of observers) guard(PLACE, () => !request.headersSent && observe(request));
}

/**
 * Returns the address of a request. Returns undefined for requests through a proxy or a Unix socket, and if the `host`
 * header names a host that the request is not sent to.
 */
export function addressOf(request: ClientRequest): URL | undefined {
  const { protocol, host, path, method, socketPath } = request as ClientRequest & { readonly socketPath?: string };
  if (method === 'CONNECT' || socketPath || !path.startsWith('/')) return undefined;
  const address = `${protocol}//${request.getHeader('host')}${path}`;
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  const isSent = isLoopback(host) ? isLoopback(url.hostname) : url.hostname === host.toLowerCase();
  return isSent ? url : undefined;
}
