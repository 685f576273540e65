import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Proxies } from '#src/http/connections.ts';
import { listenInTest } from '../support/listen-in-test.ts';

/** A proxy that opens tunnels to this machine for any host name, or responds with a status. */
export async function proxy(status = 200) {
  const asked: { target: string | undefined; authorization: string | undefined }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on('connect', (request, socket: Socket) => {
    sockets.add(socket.on('error', () => {}));
    asked.push({ target: request.url, authorization: request.headers['proxy-authorization'] });
    if (status !== 200) return void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    const onward = connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    sockets.add(onward.on('error', () => socket.destroy()));
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { url: await listenInTest(server), asked };
}

export function byProxy(address: string, except = ''): Proxies {
  const proxy = { address, variable: 'HTTP_PROXY' } as const;
  return { http: proxy, https: proxy, except };
}

/** The port of a service, under a name that is not this machine's. */
export const named = (url: string, host = 'service.test'): string => url.replace('127.0.0.1', host);
