import type { Api } from './api.ts';
import type { Resumption } from './event-feed.ts';

/**
 * Where a stream goes on by the `Location` of its answer. It may have the path of the client's address before it or not. One that
 * leads to another origin is left alone: the key goes to the client's address alone.
 */
export function resumptionAt(location: unknown, api: Pick<Api, 'urlOf'>): Resumption | undefined {
  const base = new URL(api.urlOf(''));
  if (typeof location !== 'string' || !URL.canParse(location, base.href)) return undefined;
  const { origin, pathname, searchParams } = new URL(location, base);
  if (origin !== base.origin) return undefined;
  const prefix = base.pathname.replace(/(?<!\/)\/+$/, '');
  const path = prefix !== '' && pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname;
  const names = [...new Set(searchParams.keys())];
  return { path, query: Object.fromEntries(names.map((name) => [name, searchParams.getAll(name)])) };
}
