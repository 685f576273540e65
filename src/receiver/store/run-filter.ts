import { parseIsoTimestamp } from '../../run/time.ts';
import type { RunQuery, SortKey } from '../query/query.ts';
import type { SmallFields } from './run-summary.ts';
import type { RunStatus, RunSummary, Usage } from './run-view.ts';
import { parseSearch, type Search } from './search-words.ts';

/** A query as a store asks it of its runs: times as microseconds, text as words. */
export interface RunFilter {
  readonly project: string | undefined;
  readonly traceId: string | undefined;
  readonly name: string | undefined;
  readonly runType: string | undefined;
  readonly model: string | undefined;
  readonly statuses: readonly RunStatus[] | undefined;
  readonly tags: readonly string[];
  readonly metadata: readonly (readonly [key: string, value: string | null])[];
  readonly startedFromUs: number;
  readonly startedBeforeUs: number;
  readonly latencyUs: Range | undefined;
  readonly tokens: Range | undefined;
  readonly search: Search | undefined;
}

/** Both ends included. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** A run as a filter looks at it. */
export interface FilteredRun {
  readonly summary: RunSummary;
  readonly startUs: number;
  /** From start to end; undefined for a run that has not ended. */
  readonly latencyUs: number | undefined;
  readonly metadata: NonNullable<SmallFields['extra']>['metadata'];
}

export function filterOf(query: Omit<RunQuery, 'limit'>): RunFilter {
  const { startedFrom = '', startedBefore = '', latencyMsMin, latencyMsMax, text = '' } = query;
  return {
    project: query.project,
    traceId: query.traceId,
    name: query.name,
    runType: query.runType,
    model: query.model,
    statuses: query.status === undefined ? undefined : listOf(query.status),
    tags: query.tag === undefined ? [] : listOf(query.tag),
    metadata: Object.entries(query.metadata ?? {}),
    startedFromUs: parseIsoTimestamp(startedFrom) ?? Number.NEGATIVE_INFINITY,
    startedBeforeUs: parseIsoTimestamp(startedBefore) ?? Number.POSITIVE_INFINITY,
    latencyUs: rangeOf(latencyMsMin, latencyMsMax, 1_000),
    tokens: rangeOf(query.tokensMin, query.tokensMax, 1),
    search: parseSearch(text),
  };
}

/** Whether the run is among those asked for, its text aside. `usage` is that of the trace where traces are asked for. */
export function isAmong(filter: RunFilter, run: FilteredRun, usage: Usage | undefined): boolean {
  const { summary, startUs, latencyUs, metadata } = run;
  return (
    (filter.project === undefined || isOfProject(summary, filter.project)) &&
    isOrAny(filter.traceId, summary.trace_id) &&
    isOrAny(filter.name, summary.name) &&
    isOrAny(filter.runType, summary.run_type) &&
    isOrAny(filter.model, summary.model) &&
    (filter.statuses?.includes(summary.status) ?? true) &&
    filter.tags.every((tag) => summary.tags?.includes(tag)) &&
    filter.metadata.every(([key, value]) => hasMetadata(metadata, key, value)) &&
    startUs >= filter.startedFromUs &&
    startUs < filter.startedBeforeUs &&
    isWithin(filter.latencyUs, latencyUs) &&
    isWithin(filter.tokens, usage?.total_tokens)
  );
}

/** What a list is sorted by. */
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

/** The project of runs that name none. */
const DEFAULT_PROJECT = 'default';

/** By its name, else by its id. */
export function projectOf({ session_name, session_id }: Pick<SmallFields, 'session_name' | 'session_id'>): string {
  return session_name ?? session_id ?? DEFAULT_PROJECT;
}

function isOfProject(summary: RunSummary, project: string): boolean {
  return projectOf(summary) === project || summary.session_id === project;
}

/** The text of a value of metadata, by which it is asked for. */
export function metadataText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Whether there is the key, and where a value is asked for, with that value. */
export function hasMetadata(metadata: FilteredRun['metadata'], key: string, value: string | null): boolean {
  if (metadata === undefined || !Object.hasOwn(metadata, key)) return false;
  return value === null || metadataText(metadata[key]) === value;
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
