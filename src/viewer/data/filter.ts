import { absoluteText, type FilterTerm, filterValue, parseFilter, STATUSES } from '../../receiver/filter/parser.ts';
import type { Address } from './address.ts';

export { condition, filterValue } from '../../receiver/filter/parser.ts';

interface FilterKey {
  /** Key and separator as the user types them, for example `status:`. */
  readonly key: string;
  readonly about: string;
  readonly values?: readonly string[];
}

const RUN_TYPES = ['llm', 'chain', 'tool', 'retriever', 'embedding', 'prompt', 'parser'];
const AGES = ['15m', '1h', '24h', '7d'];

/** Keys in the filter syntax, with descriptions for the help dialog and for suggestions. */
export const KEYS: readonly FilterKey[] = [
  { key: 'status:', about: STATUSES.join(', '), values: STATUSES },
  { key: 'type:', about: RUN_TYPES.join(', '), values: RUN_TYPES },
  { key: 'name:', about: 'the full name, or a part: name:answer* or name:*answer*; quote names with spaces' },
  { key: 'model:', about: 'the model' },
  { key: 'user:', about: 'the user; user:ada,bob for any of several users; other keys accept several values too' },
  { key: 'thread:', about: 'the thread' },
  { key: 'tag:', about: 'a tag; several tags must all match' },
  { key: 'meta.', about: 'metadata: meta.plan=pro, or meta.plan for any value' },
  { key: 'error:', about: 'the error contains this text; error:* for any error' },
  { key: 'feedback.', about: 'feedback: feedback.liked<0.5, or feedback.liked for any score' },
  { key: 'note:', about: 'a note is this text; note:*price* for a part of one; note:* for any note' },
  { key: 'latency>', about: 'longer than 500ms, 2s or 1m (< for shorter); latency:1s..5s for a range' },
  { key: 'tokens>', about: 'more than 1000 tokens (< for fewer); also input_tokens, output_tokens' },
  { key: 'cost>', about: 'more than 0.05 US dollars' },
  { key: 'cached<', about: 'less than 50% of the input tokens were read from a cache' },
  { key: 'since:', about: 'started in the last 15m, 1h or 7d, or after 2026-01-31T09:00', values: AGES },
  { key: 'before:', about: 'started more than 1h ago, or before 2026-01-31', values: AGES },
  { key: 'project:', about: 'the project' },
  { key: 'trace:', about: 'the id of a trace; run: for the id of a run' },
  { key: 'is:root', about: 'the first run of a trace' },
  { key: 'is:internal', about: 'a step that LangChain or LangGraph has added for itself' },
  { key: 'any(', about: 'any run of the trace matches: any(name:search error:*)' },
  { key: '-', about: 'not: -status:success; also NOT' },
  { key: 'OR', about: 'at least one of the conditions: user:ada OR tag:vip; use parentheses for several conditions' },
];

export function termsOf(filter: string): FilterTerm[] {
  return parseFilter(filter, Date.now());
}

export function metadataCondition(key: string, value: string): string {
  return `meta.${filterValue(key)}=${filterValue(value)}`;
}

/** Adds conditions to a filter. Replaces existing conditions on the same fields. */
export function withTerms(filter: string, added: string): string {
  const terms = new Map(termsOf(filter).map((term) => [slotOf(term), term.text]));
  for (const term of termsOf(added)) {
    terms.delete(slotOf(term));
    terms.set(slotOf(term), term.text);
  }
  return [...terms.values()].join(' ');
}

export function withoutTerms(filter: string, isRemoved: (term: FilterTerm) => boolean): string {
  const kept = termsOf(filter).filter((term) => !isRemoved(term));
  return kept.map(({ text }) => text).join(' ');
}

/** Converts the filter and the project to query parameters. Relative times are relative to `nowMs`. */
export function queryOf({ filter, project }: Pick<Address, 'filter' | 'project'>, nowMs: number): URLSearchParams {
  const absolute = absoluteText(parseFilter(filter, nowMs));
  const query = new URLSearchParams(absolute === '' ? {} : { filter: absolute });
  if (project !== undefined) query.set('project', project);
  return query;
}

/** Returns what a condition is about. In a filter, a condition replaces an earlier condition with the same slot. */
function slotOf({ text, kind, node }: FilterTerm): string {
  if (kind === 'since' || kind === 'before') return kind;
  if (node === undefined || !('field' in node) || node.field === 'tag') return text;
  const direction = node.bounds?.map(({ operator }) => operator.charAt(0)).join('') ?? '';
  return `${node.field}.${node.key} ${direction}`;
}
