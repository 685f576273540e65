import { SecretNames } from '../payload/secret-names.ts';

/** `null` leaves out a header that others have given. */
export type Headers = Readonly<Record<string, string | null>>;

const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** What undici puts on the wire as it is; it would refuse anything else when the request is sent. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Those of the connection, and the length of a body, which belong to what sends the request. */
const TAKEN: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

const secretNames = new SecretNames([], true);

/** One set out of several, with names in lower case: the later of one name wins, and `null` leaves it out. */
export function mergedHeaders(...sources: readonly (Headers | undefined)[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of sources.flatMap((source) => Object.entries(source ?? {}))) {
    if (value === null) headers.delete(name.toLowerCase());
    else headers.set(name.toLowerCase(), value);
  }
  return Object.fromEntries(headers);
}

/** Whether a value is an object of headers that can be sent; `Headers` and `Map` are none, they would read as empty. */
export function areHeaders(value: unknown, mayBeNull: boolean): boolean {
  if (typeof value !== 'object' || value === null || Symbol.iterator in value) return false;
  return Object.entries(value).every(([name, text]) => {
    if (!NAME.test(name) || TAKEN.has(name.toLowerCase())) return false;
    return text === null ? mayBeNull : typeof text === 'string' && VALUE.test(text);
  });
}

/** The keys and secrets that headers carry, by their names; without the scheme before them, `Bearer` for example. */
export function secretsIn(headers: Headers | undefined): string[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    if (value === null || secretNames.kindOf(name) === undefined) return [];
    return [value.trim().replace(/^(?:Basic|Bearer|Digest|Token) +/i, '')];
  });
}
