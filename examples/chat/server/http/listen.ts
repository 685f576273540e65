import type { AddressInfo } from 'node:net';
import { type ServerType, serve } from '@hono/node-server';
import type { Hono } from 'hono';

/** Serves an application. Rejects with an error that names the option to change. Logs later errors. */
export function listen({ fetch }: Hono, host: string, port: number, log: (line: string) => void): Promise<ServerType> {
  const server = serve({ fetch, port, hostname: host });
  return new Promise((resolve, reject) => {
    server.once('listening', () => resolve(server));
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (server.listening) log(`a connection failed: ${error.message}`);
      else reject(new Error(reasonOf(error, host, port)));
    });
  });
}

export function urlOf(server: ServerType, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function reasonOf({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE') return `Port ${port} is in use. Choose another port with --port.`;
  if (code === 'EACCES') return `Port ${port} needs more rights. Choose a port from 1024 with --port.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `${host} is not an address of this machine. Choose another address with --host.`;
  return `${message}. Choose another --host or --port.`;
}
