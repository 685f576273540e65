import { termsOf, withoutTerms, withTerms } from './filter.ts';

/** The values of `since:` and `before:` in a filter. */
export interface StartRange {
  readonly since?: string | undefined;
  readonly before?: string | undefined;
}

/** Ranges that end now, as values of `since:`, with their names. */
export const LATEST: readonly (readonly [since: string, name: string])[] = [
  ['15m', '15 minutes'],
  ['1h', 'hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
];

export function rangeIn(filter: string): StartRange {
  const texts = termsOf(filter).map(({ text }) => text);
  const after = (key: string) => texts.find((text) => text.startsWith(key))?.slice(key.length);
  return { since: after('since:'), before: after('before:') };
}

export function withRange(filter: string, { since, before }: StartRange): string {
  const others = withoutTerms(filter, ({ text }) => /^(since|before):/.test(text));
  return withTerms(others, `${since ? `since:${since} ` : ''}${before ? `before:${before}` : ''}`);
}

export function nameOfRange({ since, before }: StartRange): string {
  if (since === undefined && before === undefined) return 'All time';
  const latest = before === undefined && LATEST.find(([value]) => value === since);
  return latest ? `Last ${latest[1]}` : 'Custom time';
}
