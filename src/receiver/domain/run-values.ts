import { exactJson } from '../../payload/fields.ts';
import { isoTimestamp, parseIsoTimestamp } from '../../run/time.ts';
import { comparable, mayBeCut } from './comparable.ts';
import { type Feedback, NOTE } from './feedback.ts';
import type { Scope, SortKey, TextField } from './query/query.ts';
import type { RunFields } from './run-message.ts';
import type { ProjectSummary, RunSummary, TraceOutcome, Usage } from './run-view.ts';

/** Properties of a run that filters compare. */
export interface FilteredRun {
  readonly summary: RunSummary;
  readonly startUs: number;
  /** Latency in microseconds. Undefined if the run has not ended. */
  readonly latencyUs: number | undefined;
  readonly metadata: NonNullable<RunFields['extra']>['metadata'];
  readonly error: string | undefined;
  readonly feedback: readonly Feedback[];
  readonly trace: {
    /** The ids with which filters find the trace: its names, and the id with which answers show it. */
    readonly ids: readonly string[];
    readonly root: FilteredRun | undefined;
    readonly runs: readonly FilteredRun[];
    figures(isLimited: boolean): { readonly outcome: TraceOutcome } | undefined;
  };
}

export function timesOf(run: Pick<RunSummary, 'start_time' | 'end_time'>): Pick<FilteredRun, 'startUs' | 'latencyUs'> {
  const { start_time, end_time } = run;
  const startUs = parseIsoTimestamp(start_time) ?? 0;
  const endUs = end_time === undefined ? undefined : parseIsoTimestamp(end_time);
  return { startUs, latencyUs: endUs === undefined ? undefined : Math.max(0, endUs - startUs) };
}

export function filteredTexts(
  field: TextField,
  key: string,
  { summary, metadata, error, trace }: FilteredRun,
): readonly (string | undefined)[] {
  switch (field) {
    case 'type':
      return [summary.run_type];
    case 'project':
      return [projectOf(summary), summary.session_id];
    case 'trace':
      return trace.ids;
    case 'run':
      return [summary.id];
    case 'tag':
      return summary.tags ?? [];
    case 'error':
      return [comparedError(error)];
    case 'meta':
      return [metadataTextOf(metadata, key)];
    default:
      return [summary[field]];
  }
}

/** Returns the texts that filters compare: the comment of a note, or the score and the value of other feedback. */
export function feedbackTexts({ key, score, value, comment }: Feedback): string[] {
  if (key === NOTE) return comment ? [comparable(comment)] : [];
  const number = score === undefined ? undefined : Number(score);
  return [score, number, value].filter((one) => one !== undefined).map(metadataText);
}

export function sortValueOf(
  sort: SortKey,
  { startUs, latencyUs }: FilteredRun,
  usage: Usage | undefined,
): number | null {
  const values = { start_time: startUs, latency: latencyUs, tokens: usage?.total_tokens, cost: usage?.total_cost };
  return values[sort] ?? null;
}

const DEFAULT_PROJECT = 'default';

/** Returns the name of a run's project, or the project's id if the name is unknown. */
export function projectOf({ session_name, session_id }: Pick<RunFields, 'session_name' | 'session_id'>): string {
  return session_name ?? session_id ?? DEFAULT_PROJECT;
}

/** Returns the projects of runs, within a scope. A run that only patches have created may have none yet. */
export function decidedProjects({ project }: Scope, runs: readonly RunFields[]): string[] {
  const decided = runs.filter((run) => run.name !== undefined || (run.session_name ?? run.session_id) !== undefined);
  const own = decided.filter((run) => project === undefined || projectNames(run).includes(project));
  return [...new Set(own.map(projectOf))];
}

/** Returns the name and the id of a run's project. Either names the project in a filter or a scope. */
export function projectNames(run: Pick<RunFields, 'session_name' | 'session_id'>): string[] {
  return [projectOf(run), run.session_id].filter((name) => name !== undefined);
}

/** Returns projects by name. `last_us` is the start time of the latest trace. */
export function projectSummaries(
  rows: readonly { readonly project: string; readonly traces: number; readonly last_us: number }[],
): ProjectSummary[] {
  return rows
    .map(({ project, traces, last_us }) => ({ name: project, traces, last_start_time: isoTimestamp(last_us) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function isOfProject(summary: RunSummary, project: string): boolean {
  return projectNames(summary).includes(project);
}

/** Returns an error in the form in which filters compare it. */
export function comparedError(error: string | undefined): string | undefined {
  return error === '' ? undefined : error?.toLowerCase();
}

/** Returns a metadata value as filters and groups compare it. Values other than strings are converted to JSON text. */
function metadataText(value: unknown): string {
  return comparable(typeof value === 'string' ? value : exactJson(value));
}

export function metadataTextOf(metadata: FilteredRun['metadata'], key: string): string | undefined {
  if (metadata === undefined) return undefined;
  const isWhole = Object.hasOwn(metadata, key) || !mayBeCut(key);
  const own = isWhole ? key : (Object.keys(metadata).find((one) => comparable(one) === key) ?? key);
  return Object.hasOwn(metadata, own) ? metadataText(metadata[own]) : undefined;
}
