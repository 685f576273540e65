import type { MiddlewareHandler } from 'hono';
import { fault } from './fault.ts';

/**
 * Refuses requests that come under another name than the machine's own: a page elsewhere whose name leads here for a moment could read and write the threads
 * otherwise (DNS rebinding).
 */
export const loopbackHosts: MiddlewareHandler = async (context, next) => {
  const { hostname } = new URL(context.req.url);
  if (!isLoopback(hostname)) return context.json(fault('forbidden', 'This chat is for its own machine.'), 403);
  await next();
  return undefined;
};

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
