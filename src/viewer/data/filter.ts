/** One condition of a filter. `text` is its source; `problem` explains why it is ignored. */
export interface Term {
  readonly kind: 'words' | 'field' | 'metadata' | 'bound' | 'time';
  readonly text: string;
  readonly key: string;
  readonly value: string;
  readonly operator?: string;
  readonly problem?: string;
}

/** Query parameter of each key. `REPEATABLE` keys accumulate; for others the last value wins. */
const FIELDS: Readonly<Record<string, string>> = {
  status: 'status',
  type: 'run_type',
  name: 'name',
  tag: 'tag',
  model: 'model',
  project: 'project',
  trace: 'trace_id',
};
const REPEATABLE: ReadonlySet<string> = new Set(['status', 'tag']);

export const STATUSES: readonly string[] = ['error', 'pending', 'success', 'cancelled', 'interrupted', 'incomplete'];

/** Keys for help and suggestions. */
export const KEYS: readonly { readonly key: string; readonly about: string }[] = [
  { key: 'status:', about: STATUSES.join(', ') },
  { key: 'type:', about: 'chain, llm, tool, retriever, embedding, prompt, parser' },
  { key: 'name:', about: 'the full name, in quotes if it has spaces' },
  { key: 'model:', about: 'the model' },
  { key: 'tag:', about: 'a tag; several tags must all match' },
  { key: 'meta.', about: 'metadata: meta.user=42, or meta.user for any value' },
  { key: 'latency>', about: 'longer than 500ms, 2s or 1m (< for shorter)' },
  { key: 'tokens>', about: 'more tokens than 1000 (< for fewer)' },
  { key: 'since:', about: 'started in the last 15m, 1h or 7d, or after 2026-01-31T09:00' },
  { key: 'before:', about: 'started more than 1h ago, or before 2026-01-31' },
  { key: 'project:', about: 'the project' },
  { key: 'trace:', about: 'the id of a trace' },
];

const QUOTED = '"(?:[^"\\\\]|\\\\.)*"?';
const TOKEN = new RegExp(
  `meta\\.(?<metadata>${QUOTED}|[^\\s=:"]+)(?:[=:](?<equal>${QUOTED}|[^\\s"]*))?(?=\\s|$)` +
    `|(?<field>[a-z]+):(?<value>${QUOTED}|[^\\s"]\\S*|)(?=\\s|$)` +
    `|(?<bound>latency|tokens)(?<operator>>=|<=|>|<)(?<limit>\\S*)` +
    `|(?<words>${QUOTED}|\\S+)`,
  'g',
);

/** Parses a filter. Text that is not a condition is a search term. */
export function parseFilter(text: string): Term[] {
  return [...text.matchAll(TOKEN)].map(({ 0: source, groups = {} }) => termOf(source, groups));
}

export function printFilter(terms: readonly Term[]): string {
  return terms.map(({ text }) => text).join(' ');
}

/** Adds a condition, and removes the ones that it replaces. */
export function withTerm(terms: readonly Term[], added: Term): Term[] {
  const stays = (term: Term): boolean => {
    if (term.text === added.text) return false;
    if (term.kind !== added.kind || term.key !== added.key) return true;
    if (term.kind === 'bound') return term.operator?.[0] !== added.operator?.[0];
    return term.kind === 'words' || (term.kind === 'field' && REPEATABLE.has(term.key));
  };
  return [...terms.filter(stays), added];
}

export function fieldTerm(key: string, value: string): Term {
  return parseFilter(`${key}:${quoted(value)}`)[0] as Term;
}

/** Conditions for runs that started in a time range. */
export function rangeTerms(fromMs: number, beforeMs: number): Term[] {
  return parseFilter(`since:${new Date(fromMs).toISOString()} before:${new Date(beforeMs).toISOString()}`);
}

export function metadataTerm(key: string, value: string): Term {
  return parseFilter(`meta.${quoted(key)}=${quoted(value)}`)[0] as Term;
}

/** Converts conditions to query parameters. `nowMs` resolves relative times, so that all pages of a list use the same time. */
export function queryOf(terms: readonly Term[], nowMs: number): URLSearchParams {
  const query = new URLSearchParams();
  const words: string[] = [];
  for (const term of terms) {
    const { kind, key, value, operator = '' } = term;
    if (term.problem !== undefined) continue;
    const field = FIELDS[key];
    if (kind === 'words') words.push(value);
    else if (kind === 'metadata') query.append('metadata', value === '' ? key : `${key}=${value}`);
    else if (kind === 'time')
      query.set(key === 'since' ? 'started_from' : 'started_before', toIsoTime(value, nowMs) ?? '');
    else if (kind === 'bound') setBound(query, key, operator, value);
    else if (field !== undefined && REPEATABLE.has(key)) query.append(field, value);
    else if (field !== undefined) query.set(field, value);
  }
  if (words.length > 0) query.set('text', words.join(' '));
  return query;
}

function termOf(text: string, groups: Readonly<Record<string, string | undefined>>): Term {
  const { metadata, equal, field, value = '', bound, operator = '', limit = '', words = text } = groups;
  if (metadata !== undefined) return { kind: 'metadata', text, key: unquoted(metadata), value: unquoted(equal ?? '') };
  if (bound !== undefined) {
    const amount = bound === 'latency' ? parseDuration(limit) : parseCount(limit);
    const wanted = bound === 'latency' ? 'a duration: 500ms, 2s, 1m' : 'a number: 1000';
    const term: Term = { kind: 'bound', text, key: bound, operator, value: `${amount}` };
    return amount === undefined ? { ...term, problem: `${bound}${operator} expects ${wanted}` } : term;
  }
  if (field === 'since' || field === 'before') {
    const term: Term = { kind: 'time', text, key: field, value: unquoted(value) };
    if (toIsoTime(term.value, 0) !== undefined) return term;
    return { ...term, problem: `${field}: expects a time: 15m, 1h, 7d, 2026-01-31, 2026-01-31T09:00` };
  }
  if (field !== undefined && Object.hasOwn(FIELDS, field)) {
    const term: Term = { kind: 'field', text, key: field, value: unquoted(value) };
    const problem = expectedValue(field, term.value);
    return problem === undefined ? term : { ...term, problem: `${field}: expects ${problem}` };
  }
  const isUnclosed = words.startsWith('"') && !/[^\\]"$/.test(words);
  const closed = isUnclosed && field === undefined ? `${words}"` : text;
  return { kind: 'words', text: closed, key: '', value: closed };
}

/** Describes the expected value if the receiver would reject the query. */
function expectedValue(field: string, value: string): string | undefined {
  if (value === '') return 'a value';
  if (field === 'status' && !STATUSES.includes(value)) return `one of ${STATUSES.join(', ')}`;
  if (field === 'trace' && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) return 'a full id';
  return undefined;
}

function unquoted(text: string): string {
  return text.startsWith('"') ? text.replace(/^"|(?<!\\)"$/g, '').replace(/\\(.)/g, '$1') : text;
}

/** Quotes a value if the filter's syntax requires it. */
export function quoted(text: string): string {
  return /^[^\s"\\=:]+$/.test(text) ? text : `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** The API's bounds are inclusive, so `>` and `<` add or subtract one token or one microsecond. */
function setBound(query: URLSearchParams, key: string, operator: string, value: string): void {
  const step = operator.endsWith('=') ? 0 : key === 'tokens' ? 1 : 0.001;
  const isMin = operator.startsWith('>');
  const name = `${key === 'latency' ? 'latency_ms' : key}_${isMin ? 'min' : 'max'}`;
  query.set(name, `${Math.max(0, Number((Number(value) + (isMin ? step : -step)).toFixed(3)))}`);
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

/** Parses `2s` or `1.5m`. A number without a unit is in seconds. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)?$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) * (UNITS_MS[unit] ?? 1);
}

function parseCount(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Converts a duration before now, or a date, to ISO 8601. */
function toIsoTime(text: string, nowMs: number): string | undefined {
  if (/^\d+(\.\d+)?(ms|s|min|m|h|d|w)$/.test(text)) {
    return new Date(Math.max(0, nowMs - (parseDuration(text) ?? 0))).toISOString();
  }
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return undefined;
  // `Date` reads a date without a time as UTC; here it is local.
  const date = new Date(text.length === 10 ? `${text}T00:00` : text);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
