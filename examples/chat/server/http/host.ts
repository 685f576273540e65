import type { AddressInfo } from 'node:net';
import { type ServerType, serve } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono, type MiddlewareHandler } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { RequestError } from '../errors.ts';

/**
 * Refuses requests for host names other than these and the machine's own. This check prevents DNS rebinding: another
 * site could otherwise point its host name at the chat server and read the threads. Throws if a name is not a valid
 * host name.
 */
export function allowHosts(names: readonly string[]): MiddlewareHandler {
  for (const name of names) {
    if (!/^([a-z\d]([\w.-]*[a-z\d])?|\[[\da-f:.]+\])$/i.test(name))
      throw new Error(
        `Expected allowedHosts to hold names without scheme, port and *, such as "chat.example", got ${JSON.stringify(name)}.`,
      );
  }
  const allowed = new Set(names.map((name) => name.toLowerCase()));
  return (context, next) => {
    const { hostname } = new URL(context.req.url);
    if (isLoopback(hostname) || allowed.has(hostname)) return next();
    const message = `The host name ${hostname} is not allowed. Add it to allowedHosts: --allow-host NAME, or CHAT_ALLOWED_HOSTS.`;
    throw new RequestError('forbidden', message, 403);
  };
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Returns the host name to use in URLs for the address that a server listens on. Empty for a wildcard address or an
 * address with a zone.
 */
export function hostNames(address: string): string[] {
  if (address === '0.0.0.0' || address === '::') return [];
  const url = `http://${address.includes(':') ? `[${address}]` : address}`;
  return URL.canParse(url) ? [new URL(url).hostname] : [];
}

/**
 * Serves the page's files. The content security policy allows the page to connect to this server and to the one that
 * receives feedback.
 */
export function pageRoutes(folder: string, feedbackOrigin: string | undefined): Hono {
  const app = new Hono();
  app.use(
    secureHeaders({
      // This header is left to the proxy, which handles TLS.
      strictTransportSecurity: false,
      contentSecurityPolicy: {
        defaultSrc: ["'self'"],
        connectSrc: ["'self'", ...(feedbackOrigin === undefined ? [] : [feedbackOrigin])],
        imgSrc: ["'self'", 'data:'],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
      },
    }),
  );
  app.use('/assets/*', async (context, next) => {
    await next();
    // These files never change, because their names contain a hash of their content.
    context.header('cache-control', 'public, max-age=31536000, immutable');
  });
  app.use(serveStatic({ root: folder }));
  return app;
}

/**
 * Starts a server for an application. If the server cannot listen, rejects with an error that names the option to
 * change. Later errors are logged.
 */
export function listen({ fetch }: Hono, host: string, port: number, log: (line: string) => void): Promise<ServerType> {
  const server = serve({ fetch, port, hostname: host });
  return new Promise((resolve, reject) => {
    server.once('listening', () => resolve(server));
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (server.listening) log(`a connection failed: ${error.message}`);
      else reject(new Error(listenError(error, host, port)));
    });
  });
}

export function urlOf(server: ServerType, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function listenError({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE') return `Port ${port} is in use. Choose another port with --port.`;
  if (code === 'EACCES') return `Port ${port} requires more privileges. Choose a port of at least 1024 with --port.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `${host} is not an address of this machine. Choose another address with --host.`;
  return `${message}. Choose another --host or --port.`;
}
