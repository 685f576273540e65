import type { MiddlewareHandler } from 'hono';
import { fault } from './fault.ts';

/**
 * Refuses requests that come under another name than these and the machine's own: a page elsewhere whose name leads here for a moment could read and write
 * the threads otherwise (DNS rebinding). Throws where one of them is no name.
 */
export function allowedHosts(names: readonly string[]): MiddlewareHandler {
  const allowed = new Set(names.map(checkedName));
  return async (context, next) => {
    const { hostname } = new URL(context.req.url);
    if (!isLoopback(hostname) && !allowed.has(hostname)) {
      const said = `The host name ${hostname} is not allowed. Add it to allowedHosts: --allow-host NAME, or CHAT_ALLOWED_HOSTS.`;
      return context.json(fault('forbidden', said), 403);
    }
    await next();
    return undefined;
  };
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Returns the host name to use in URLs for the address that a server listens on. Returns an empty list for a wildcard
 * address and for an address with a zone id.
 */
export function nameOf(address: string): string[] {
  if (address === '0.0.0.0' || address === '::') return [];
  const url = `http://${address.includes(':') ? `[${address}]` : address}`;
  return URL.canParse(url) ? [new URL(url).hostname] : [];
}

/** As it stands in the address of a request. What cannot stand there would be allowed in vain. */
function checkedName(name: string): string {
  if (/^([a-z\d]([\w.-]*[a-z\d])?|\[[\da-f:.]+\])$/i.test(name)) return name.toLowerCase();
  throw new Error(
    `allowedHosts has ${JSON.stringify(name)}: a name is written without scheme, port and *, as "chat.example".`,
  );
}
