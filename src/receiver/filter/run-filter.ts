import { RunspanError } from '../../base/errors.ts';
import { shown } from '../../base/text.ts';
import { canonicalId, parseIsoTimestamp } from '../../run/time.ts';
import { comparable } from '../domain/comparable.ts';
import type { ListQuery, RunQuery, Scope, StatisticsQuery, TextField, TimeRange } from '../domain/query/query.ts';
import { parseSearch, type Search } from '../domain/query/search-words.ts';
import type { Comparison, FilterNode } from './filter.ts';
import { type FilterTerm, parseFilter, problemIn } from './parser.ts';

/** A parsed filter. A run must match all parts. */
export interface RunFilter {
  /** Names or ids of projects. A run must be in each of them. */
  readonly projects: readonly string[];
  /** Whether the outcomes and totals of traces are those of the runs in the project of their root. */
  readonly isLimited: boolean;
  readonly range: TimeRange;
  readonly conditions: readonly FilterNode[];
  readonly search: Search | undefined;
}

/** The time range that contains all runs. */
export const ALL_TIMES: TimeRange = { fromUs: Number.NEGATIVE_INFINITY, beforeUs: Number.POSITIVE_INFINITY };

export const ALL_RUNS: RunFilter = {
  projects: [],
  isLimited: false,
  range: ALL_TIMES,
  conditions: [],
  search: undefined,
};

/** A query in which one filter replaces the project, the trace id and the text of the filter. */
export type Parsed<Query extends RunQuery> = Omit<Query, 'project' | 'traceId' | 'filter'> & {
  readonly filter: RunFilter;
};

/**
 * Parses the filter of a query. In a list of traces, `status` is the outcome of the trace, and any of its runs may have the
 * thread or the user. Throws `RUNSPAN_INVALID_OPTION` if the filter is invalid.
 */
export function parsedQuery<Query extends RunQuery | ListQuery | StatisticsQuery>(
  query: Query,
  list: 'runs' | 'traces' = 'runs',
): Parsed<Query> {
  const { project, traceId, filter = '', ...others } = query;
  const terms = parseFilter(filter, Date.now());
  const problem = problemIn(terms);
  if (problem !== undefined) {
    const message = `Expected \`filter\` to be a valid filter, got ${shown(filter)}: ${problem}`;
    throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
  }
  const valuesOf = (kind: FilterTerm['kind']) => terms.filter((term) => term.kind === kind).map(({ value }) => value);
  const times = (kind: FilterTerm['kind']) => valuesOf(kind).flatMap((time) => parseIsoTimestamp(time) ?? []);
  const text = terms.flatMap(({ kind, text: one }) => (kind === 'since' || kind === 'before' ? one : [])).join(' ');
  const given = terms.flatMap(({ node }) => node ?? []);
  const nodes = given.map((node) => preparedNode(node, list));
  const own = traceId === undefined ? nodes : [equal('trace', canonicalId(traceId)), ...nodes];
  const projects = nodes.flatMap((node) => singleValueOf(node, 'project') ?? []);
  return {
    ...others,
    filter: {
      projects: project === undefined ? projects : [comparable(project), ...projects],
      isLimited: false,
      range: {
        fromUs: Math.max(ALL_TIMES.fromUs, ...times('since')),
        beforeUs: Math.min(ALL_TIMES.beforeUs, ...times('before')),
        ...(text !== '' && { text }),
      },
      conditions: own.filter((node) => singleValueOf(node, 'project') === undefined),
      search: parseSearch(valuesOf('words').join(' ')),
    },
  };
}

/** Gives the values of a condition the form of stored texts, and the condition its meaning in a list of traces. */
function preparedNode(node: FilterNode, list: 'runs' | 'traces'): FilterNode {
  const prepared = (one: FilterNode) => preparedNode(one, list);
  if ('all' in node) return { all: node.all.map(prepared) };
  if ('some' in node) return { some: node.some.map(prepared) };
  if ('not' in node) return { not: prepared(node.not) };
  if ('anyRun' in node) return { anyRun: preparedNode(node.anyRun, 'runs') };
  const key = node.key && { key: comparable(node.key) };
  const values = node.values?.map(({ kind, text }) => ({ kind, text: kind === 'equal' ? comparable(text) : text }));
  const own = { ...node, ...key, ...(values && { values }) };
  if (list === 'runs') return own;
  if (own.field === 'status') return { ...own, field: 'outcome' };
  return own.field === 'thread' || own.field === 'user' ? { anyRun: own } : own;
}

/** Returns the filter that matches all runs of a project, or of all projects if none is given. */
export function inProject(project: string | undefined): RunFilter {
  return project === undefined ? ALL_RUNS : { ...ALL_RUNS, projects: [project] };
}

export function withinProject({ project }: Scope, filter: RunFilter): RunFilter {
  return project === undefined ? filter : { ...filter, projects: [project, ...filter.projects], isLimited: true };
}

export function equal(field: TextField, text: string): Comparison {
  return { field, values: [{ kind: 'equal', text: comparable(text) }] };
}

/** Returns a condition that a field has one of the values. Without values, no run matches. */
export function among(field: 'run' | 'trace' | 'project', texts: readonly string[]): FilterNode {
  const values = texts.map((text) => ({ kind: 'equal' as const, text }));
  return values.length === 0 ? { some: [] } : { field, values };
}

/** Returns the value if the condition compares the field with exactly one value. */
export function singleValueOf(node: FilterNode, field: TextField): string | undefined {
  if (!('field' in node) || node.field !== field || node.values?.length !== 1) return undefined;
  const [value] = node.values;
  return value?.kind === 'equal' ? value.text : undefined;
}

/** Returns the values of a field that a filter allows, if it lists them. */
export function valuesIn({ conditions }: RunFilter, field: TextField): string[] | undefined {
  const comparisons = conditions.filter((one) => 'field' in one);
  const node = comparisons.find((one) => one.field === field && one.values !== undefined);
  return node?.values?.every(({ kind }) => kind === 'equal') ? node.values.map(({ text }) => text) : undefined;
}
