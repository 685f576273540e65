import { parseIsoTimestamp } from '../../run/time.ts';
import type { ListQuery, Ranged, RunQuery, SortKey, StatisticsQuery, TimeRange } from '../query/query.ts';
import type { RunStatus, RunSummary, Usage } from './run-view.ts';
import { parseSearch, type Search } from './search-words.ts';
import type { RunFields, Scope } from './store.ts';

/** A parsed query. The search text is split into words. Single values are converted to lists. */
export interface RunFilter {
  /**
   * Projects from the scope and from the query. A run's project must equal each of these projects, by name or by id.
   */
  readonly projects: readonly string[];
  readonly traceId: string | undefined;
  readonly name: string | undefined;
  readonly runType: string | undefined;
  readonly model: string | undefined;
  readonly thread: string | undefined;
  readonly statuses: readonly RunStatus[] | undefined;
  readonly tags: readonly string[];
  readonly metadata: readonly (readonly [key: string, value: string | null])[];
  readonly range: TimeRange;
  readonly latencyUs: Range | undefined;
  readonly tokens: Range | undefined;
  readonly search: Search | undefined;
}

/** A range of numbers. Both ends are inclusive. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** Properties of a run that filters compare. */
export interface FilteredRun {
  readonly summary: RunSummary;
  readonly startUs: number;
  /** Latency in microseconds. Undefined if the run has not ended. */
  readonly latencyUs: number | undefined;
  readonly metadata: NonNullable<RunFields['extra']>['metadata'];
}

export function timesOf(run: Pick<RunSummary, 'start_time' | 'end_time'>): Pick<FilteredRun, 'startUs' | 'latencyUs'> {
  const { start_time, end_time } = run;
  const startUs = parseIsoTimestamp(start_time) ?? 0;
  const endUs = end_time === undefined ? undefined : parseIsoTimestamp(end_time);
  return { startUs, latencyUs: endUs === undefined ? undefined : Math.max(0, endUs - startUs) };
}

/** The time range that contains all runs. */
export const ALL_TIMES: TimeRange = { fromUs: Number.NEGATIVE_INFINITY, beforeUs: Number.POSITIVE_INFINITY };

/** Replaces the start times of a query with an explicit time range. */
export function ranged<Query extends RunQuery | ListQuery | StatisticsQuery>(query: Query): Ranged<Query> {
  const { startedFrom = '', startedBefore = '', ...others } = query;
  const range = {
    fromUs: parseIsoTimestamp(startedFrom) ?? ALL_TIMES.fromUs,
    beforeUs: parseIsoTimestamp(startedBefore) ?? ALL_TIMES.beforeUs,
  };
  return { ...others, range };
}

/** Creates a filter from the scope and the query. */
export function filterOf({ project: own }: Scope, query: Ranged<Omit<RunQuery, 'limit'>>): RunFilter {
  const { project, latencyMsMin, latencyMsMax, text = '' } = query;
  return {
    projects: [own, project].filter((name) => name !== undefined),
    traceId: query.traceId,
    name: query.name,
    runType: query.runType,
    model: query.model,
    thread: query.thread,
    statuses: query.status === undefined ? undefined : listOf(query.status),
    tags: query.tag === undefined ? [] : listOf(query.tag),
    metadata: Object.entries(query.metadata ?? {}),
    range: query.range,
    latencyUs: rangeOf(latencyMsMin, latencyMsMax, 1_000),
    tokens: rangeOf(query.tokensMin, query.tokensMax, 1),
    search: parseSearch(text),
  };
}

/**
 * Returns whether a run matches every condition of the filter except `search`. In a list of traces, `usage` is the
 * usage of the whole trace.
 */
export function isAmong(filter: RunFilter, run: FilteredRun, usage: Usage | undefined): boolean {
  const { summary, startUs, latencyUs, metadata } = run;
  return (
    filter.projects.every((project) => isOfProject(summary, project)) &&
    isOrAny(filter.traceId, summary.trace_id) &&
    isOrAny(filter.name, summary.name) &&
    isOrAny(filter.runType, summary.run_type) &&
    isOrAny(filter.model, summary.model) &&
    (filter.thread === undefined || filter.thread === threadOf(metadata)) &&
    (filter.statuses?.includes(summary.status) ?? true) &&
    filter.tags.every((tag) => summary.tags?.includes(tag)) &&
    filter.metadata.every(([key, value]) => hasMetadata(metadata, key, value)) &&
    startUs >= filter.range.fromUs &&
    startUs < filter.range.beforeUs &&
    isWithin(filter.latencyUs, latencyUs) &&
    isWithin(filter.tokens, usage?.total_tokens)
  );
}

/** Returns the value by which a list sorts the run, or null if the run has no such value. */
export function sortValueOf(
  sort: SortKey,
  { startUs, latencyUs }: FilteredRun,
  usage: Usage | undefined,
): number | null {
  switch (sort) {
    case 'start_time':
      return startUs;
    case 'latency':
      return latencyUs ?? null;
    case 'tokens':
      return usage?.total_tokens ?? null;
    case 'cost':
      return usage?.total_cost ?? null;
  }
}

/** Default project for runs that do not specify one. */
const DEFAULT_PROJECT = 'default';

/** Returns the name of a run's project, or the project's id if the name is unknown. */
export function projectOf({ session_name, session_id }: Pick<RunFields, 'session_name' | 'session_id'>): string {
  return session_name ?? session_id ?? DEFAULT_PROJECT;
}

export function isOfProject(summary: RunSummary, project: string): boolean {
  return projectOf(summary) === project || summary.session_id === project;
}

/** Metadata keys that identify a conversation. The first key with a text value is used. */
const THREAD_KEYS: readonly string[] = ['thread_id', 'session_id', 'conversation_id'];

export function threadOf(metadata: FilteredRun['metadata']): string | undefined {
  return THREAD_KEYS.map((key) => metadata?.[key]).find((value) => typeof value === 'string');
}

export function userOf(metadata: FilteredRun['metadata']): string | undefined {
  const user = metadata?.user_id;
  return typeof user === 'string' ? user : undefined;
}

/** Returns whether the metadata contains the key with this value. If `value` is null, any value matches. */
export function hasMetadata(metadata: FilteredRun['metadata'], key: string, value: string | null): boolean {
  if (metadata === undefined || !Object.hasOwn(metadata, key)) return false;
  return value === null || value === metadataText(metadata[key]);
}

/** Returns a metadata value as filters and groups compare it. Values other than strings are converted to JSON text. */
export function metadataText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function isOrAny(asked: string | undefined, value: string | undefined): boolean {
  return asked === undefined || value === asked;
}

function isWithin(range: Range | undefined, value: number | undefined): boolean {
  return range === undefined || (value !== undefined && value >= range.min && value <= range.max);
}

function rangeOf(min: number | undefined, max: number | undefined, unit: number): Range | undefined {
  if (min === undefined && max === undefined) return undefined;
  return { min: (min ?? Number.NEGATIVE_INFINITY) * unit, max: (max ?? Number.POSITIVE_INFINITY) * unit };
}

function listOf<Item>(value: Item | readonly Item[]): readonly Item[] {
  return Array.isArray(value) ? value : [value as Item];
}
