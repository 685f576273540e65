import type { AmountField } from './filter.ts';

const DURATION = 'a duration: 500ms, 2s, 1m';
const COUNT = 'a number: 1000';
const SHARE = 'a share: 50%, 0.5';
export const NUMBER = 'a number: 0.5';

/** Fields with a number, and a description and a parser of their values. */
export const AMOUNTS: Readonly<
  Record<AmountField, readonly [expected: string, parse: (text: string) => number | undefined]>
> = {
  latency: [DURATION, parseLatencyUs],
  tokens: [COUNT, parseNumber],
  input_tokens: [COUNT, parseNumber],
  output_tokens: [COUNT, parseNumber],
  cost: [NUMBER, parseNumber],
  cached: [SHARE, parseShare],
};

export const TIME = 'a time: 15m, 1h, 7d, 2026-01-31, 2026-01-31T09:00';

const DECIMAL = /^-?\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?$/i;

export function parseNumber(text: string): number | undefined {
  return DECIMAL.test(text) ? Number(text) : undefined;
}

/** Parses a share from 0 to 1, or from 0 % to 100 %. */
function parseShare(text: string): number | undefined {
  const share = text.endsWith('%') ? Number(parseNumber(text.slice(0, -1))) / 100 : Number(parseNumber(text));
  return share >= 0 && share <= 1 ? share : undefined;
}

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** Parses a duration such as `2s` or `1.5m`. The default unit is seconds. */
function parseDurationMs(text: string): number | undefined {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|min|m|h|d|w)?$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (UNITS_MS[unit] ?? 1);
}

function parseLatencyUs(text: string): number | undefined {
  const ms = parseDurationMs(text);
  return ms === undefined ? undefined : Math.round(ms * 1_000);
}

/** Converts a date, or a duration before now, to an ISO 8601 timestamp. */
export function toIsoTime(text: string, nowMs: number): string | undefined {
  const ms = /[a-z]$/.test(text) ? parseDurationMs(text) : undefined;
  if (ms !== undefined) return new Date(Math.max(0, nowMs - ms)).toISOString();
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return undefined;
  // `Date` parses 31 April as 1 May.
  if (new Date(text.slice(0, 10)).getUTCDate() !== Number(text.slice(8, 10))) return undefined;
  // `Date` parses a date without a time as UTC, but a date with a time as local time.
  const date = new Date(text.length === 10 ? `${text}T00:00` : text);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
