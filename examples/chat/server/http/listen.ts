import type { AddressInfo } from 'node:net';
import { type ServerType, serve } from '@hono/node-server';
import type { Hono } from 'hono';

/** Serves an application. Rejects with an error that says which option is to be another; later ones, as of single connections, are logged. */
export function listen({ fetch }: Hono, host: string, port: number, log: (line: string) => void): Promise<ServerType> {
  const server = serve({ fetch, port, hostname: host });
  return new Promise((resolve, reject) => {
    server.once('listening', () => resolve(server));
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (server.listening) log(`a connection could not be taken: ${error.message}`);
      else reject(new Error(reasonOf(error, host, port)));
    });
  });
}

/** Where it can be reached. */
export function urlOf(server: ServerType, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function reasonOf({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is taken; choose another one with --port`;
    case 'EACCES':
      return `port ${port} is not for this user; choose one from 1024 on with --port`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is no address of this machine; name one of its own with --host`;
    default:
      return `${message}; choose another --host or --port`;
  }
}
