import type { Address } from './address.ts';

export interface Term {
  readonly text: string;
  /** Name of the query parameter in the receiver's API. */
  readonly parameter: string;
  /** Value of the query parameter. `queryOf` converts relative times to timestamps. */
  readonly value: string;
  /** Reason why the condition is ignored. */
  readonly problem?: string | undefined;
}

interface FilterKey {
  /** Key and separator as the user types them, for example `status:`. */
  readonly key: string;
  readonly about: string;
  /** Query parameter that the key sets. */
  readonly parameter?: string;
  readonly values?: readonly string[];
}

const STATUSES = ['error', 'pending', 'success', 'cancelled', 'interrupted', 'incomplete'];
const RUN_TYPES = ['llm', 'chain', 'tool', 'retriever', 'embedding', 'prompt', 'parser'];
const AGES = ['15m', '1h', '24h', '7d'];

/** Keys in the filter syntax, with descriptions for the help dialog and for suggestions. */
export const KEYS: readonly FilterKey[] = [
  { key: 'status:', about: STATUSES.join(', '), parameter: 'status', values: STATUSES },
  { key: 'type:', about: RUN_TYPES.join(', '), parameter: 'run_type', values: RUN_TYPES },
  { key: 'name:', about: 'the full name; quote names with spaces', parameter: 'name' },
  { key: 'model:', about: 'the model', parameter: 'model' },
  { key: 'tag:', about: 'a tag; several tags must all match', parameter: 'tag' },
  { key: 'meta.', about: 'metadata: meta.user=42, or meta.user for any value' },
  { key: 'latency>', about: 'longer than 500ms, 2s or 1m (< for shorter)' },
  { key: 'tokens>', about: 'more than 1000 tokens (< for fewer)' },
  { key: 'since:', about: 'started in the last 15m, 1h or 7d, or after 2026-01-31T09:00', values: AGES },
  { key: 'before:', about: 'started more than 1h ago, or before 2026-01-31', values: AGES },
  { key: 'project:', about: 'the project', parameter: 'project' },
  { key: 'trace:', about: 'the id of a trace', parameter: 'trace_id' },
];

/** Query parameters that may be repeated. If any other parameter is repeated, only the last condition applies. */
const REPEATABLE: ReadonlySet<string> = new Set(['status', 'tag', 'text']);

const QUOTED = '"(?:[^"\\\\]|\\\\.)*"?';
const TOKEN = new RegExp(
  `meta\\.(?<metadata>${QUOTED}|[^\\s=:"]+)(?:[=:](?<equal>${QUOTED}|[^\\s"]*))?(?=\\s|$)` +
    `|(?<field>[a-z]+):(?<value>${QUOTED}|[^\\s"]\\S*|)(?=\\s|$)` +
    `|(?<bound>latency|tokens)(?<operator>>=|<=|>|<)(?<limit>\\S*)` +
    `|(?<words>${QUOTED}|\\S+)`,
  'g',
);

/** Parses a filter text. Text that is not a condition becomes a search term. */
export function parseFilter(text: string): Term[] {
  return [...text.matchAll(TOKEN)].map(({ 0: source, groups = {} }) => termOf(source, groups));
}

export function condition(key: string, value: string): string {
  return `${key}:${quoted(value)}`;
}

export function metadataCondition(key: string, value: string): string {
  return `meta.${quoted(key)}=${quoted(value)}`;
}

/** Adds conditions to a filter. Replaces existing conditions on the same fields. */
export function withTerms(filter: string, added: string): string {
  const terms = new Map(parseFilter(filter).map((term) => [slotOf(term), term.text]));
  for (const term of parseFilter(added)) {
    terms.delete(slotOf(term));
    terms.set(slotOf(term), term.text);
  }
  return [...terms.values()].join(' ');
}

export function withoutTerms(filter: string, isRemoved: (term: Term) => boolean): string {
  const kept = parseFilter(filter).filter((term) => !isRemoved(term));
  return kept.map(({ text }) => text).join(' ');
}

/** Converts the filter and the project to query parameters. Relative times are relative to `nowMs`. */
export function queryOf({ filter, project }: Pick<Address, 'filter' | 'project'>, nowMs: number): URLSearchParams {
  const query = new URLSearchParams();
  for (const { parameter, value, problem } of parseFilter(filter)) {
    if (problem !== undefined) continue;
    if (parameter === 'text') query.set(parameter, [...query.getAll(parameter), value].join(' '));
    else if (parameter.startsWith('started_')) query.set(parameter, toIsoTime(value, nowMs) ?? '');
    else if (parameter === 'metadata' || REPEATABLE.has(parameter)) query.append(parameter, value);
    else query.set(parameter, value);
  }
  if (project !== undefined) query.set('project', project);
  return query;
}

/** Returns the slot of a condition. A new condition replaces an existing condition in the same slot. */
function slotOf({ text, parameter, value }: Term): string {
  if (REPEATABLE.has(parameter)) return `${parameter} ${text}`;
  return parameter === 'metadata' ? `metadata ${value.split('=', 1)}` : parameter;
}

function termOf(text: string, groups: Readonly<Record<string, string | undefined>>): Term {
  const { metadata, equal, field, value = '', bound, operator = '', limit = '', words = text } = groups;
  if (metadata !== undefined) {
    const wanted = unquoted(equal ?? '');
    return { text, parameter: 'metadata', value: unquoted(metadata) + (wanted === '' ? '' : `=${wanted}`) };
  }
  if (bound !== undefined) return boundOf(text, bound, operator, limit);
  const plain = unquoted(value);
  if (field === 'since' || field === 'before') {
    const problem = `${field}: expects a time: 15m, 1h, 7d, 2026-01-31, 2026-01-31T09:00`;
    const term: Term = { text, parameter: field === 'since' ? 'started_from' : 'started_before', value: plain };
    return toIsoTime(plain, 0) === undefined ? { ...term, problem } : term;
  }
  const parameter = KEYS.find(({ key }) => key === `${field}:`)?.parameter;
  if (field !== undefined && parameter !== undefined) {
    const wanted = expectedValue(field, plain);
    return { text, parameter, value: plain, problem: wanted && `${field}: expects ${wanted}` };
  }
  const isUnclosed = words.startsWith('"') && !/[^\\]"$/.test(words);
  const closed = isUnclosed && field === undefined ? `${words}"` : text;
  return { text: closed, parameter: 'text', value: closed };
}

/**
 * Returns a condition with a lower or upper bound. The API's bounds are inclusive, so `>` and `<` are adjusted by one
 * token or one microsecond.
 */
function boundOf(text: string, key: string, operator: string, limit: string): Term {
  const isLatency = key === 'latency';
  const isMin = operator.startsWith('>');
  const amount = isLatency ? parseDuration(limit) : /^\d+$/.test(limit) ? Number(limit) : undefined;
  const step = operator.endsWith('=') ? 0 : isLatency ? 0.001 : 1;
  const parameter = `${isLatency ? 'latency_ms' : key}_${isMin ? 'min' : 'max'}`;
  if (amount === undefined) {
    const wanted = isLatency ? 'a duration: 500ms, 2s, 1m' : 'a number: 1000';
    return { text, parameter, value: '', problem: `${key}${operator} expects ${wanted}` };
  }
  return { text, parameter, value: `${Math.max(0, Number((amount + (isMin ? step : -step)).toFixed(3)))}` };
}

/** Describes the values that the receiver accepts. Returns undefined if the receiver accepts the given value. */
function expectedValue(field: string, value: string): string | undefined {
  if (value === '') return 'a value';
  if (field === 'status' && !STATUSES.includes(value)) return `one of ${STATUSES.join(', ')}`;
  if (field === 'trace' && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) return 'a full id';
  return undefined;
}

function unquoted(text: string): string {
  return text.startsWith('"') ? text.replace(/^"|(?<!\\)"$/g, '').replace(/\\(.)/g, '$1') : text;
}

/** Puts a value in quotes if the filter syntax requires it. */
function quoted(text: string): string {
  return /^[^\s"\\=:]+$/.test(text) ? text : `"${text.replace(/[\\"]/g, '\\$&')}"`;
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
function parseDuration(text: string): number | undefined {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)?$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (UNITS_MS[unit] ?? 1);
}

/** Converts a date, or a duration before now, to an ISO 8601 timestamp. */
function toIsoTime(text: string, nowMs: number): string | undefined {
  if (/^\d+(\.\d+)?(ms|s|min|m|h|d|w)$/.test(text)) {
    return new Date(Math.max(0, nowMs - (parseDuration(text) ?? 0))).toISOString();
  }
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return undefined;
  // `Date` parses a date without a time as UTC, but a date with a time as local time.
  const date = new Date(text.length === 10 ? `${text}T00:00` : text);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
