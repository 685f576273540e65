import { parseIsoTimestamp } from '../../run/time.ts';
import type { Feedback } from '../domain/feedback.ts';
import type { SortKey } from '../domain/query.ts';
import type { RunFields } from '../domain/run-message.ts';
import type { RunSummary, Usage } from '../domain/run-view.ts';
import type { Bound, Comparison, FilterNode, TextPattern } from './filter.ts';
import type { RunFilter } from './run-filter.ts';

/** Properties of a run that filters compare. */
export interface FilteredRun {
  readonly summary: RunSummary;
  readonly startUs: number;
  /** Latency in microseconds. Undefined if the run has not ended. */
  readonly latencyUs: number | undefined;
  readonly metadata: NonNullable<RunFields['extra']>['metadata'];
  /** The complete error. */
  readonly error: string | undefined;
  readonly feedback: readonly Feedback[];
  readonly trace: { readonly root: FilteredRun | undefined; readonly runs: readonly FilteredRun[] };
}

export function timesOf(run: Pick<RunSummary, 'start_time' | 'end_time'>): Pick<FilteredRun, 'startUs' | 'latencyUs'> {
  const { start_time, end_time } = run;
  const startUs = parseIsoTimestamp(start_time) ?? 0;
  const endUs = end_time === undefined ? undefined : parseIsoTimestamp(end_time);
  return { startUs, latencyUs: endUs === undefined ? undefined : Math.max(0, endUs - startUs) };
}

/**
 * Returns whether a run matches every condition of the filter except `search`. In a list of traces, `usage` is the
 * usage of the whole trace.
 */
export function isAmong(filter: RunFilter, run: FilteredRun, usage: Usage | undefined): boolean {
  return (
    isInside(filter, run) &&
    run.startUs >= filter.range.fromUs &&
    run.startUs < filter.range.beforeUs &&
    filter.conditions.every((node) => isMatch(filter, node, run, usage))
  );
}

/** Returns whether a run is in the projects of the filter. */
export function isInside({ projects }: RunFilter, { summary }: FilteredRun): boolean {
  return projects.every((project) => isOfProject(summary, project));
}

function isMatch(filter: RunFilter, node: FilterNode, run: FilteredRun, usage: Usage | undefined): boolean {
  if ('all' in node) return node.all.every((one) => isMatch(filter, one, run, usage));
  if ('some' in node) return node.some.some((one) => isMatch(filter, one, run, usage));
  if ('not' in node) return !isMatch(filter, node.not, run, usage);
  if ('anyRun' in node) {
    return run.trace.runs.some((one) => isInside(filter, one) && isMatch(filter, node.anyRun, one, one.summary.usage));
  }
  if (node.field === 'root') return run === run.trace.root;
  if (node.field === 'feedback') return run.feedback.some((feedback) => isMatchingFeedback(node, feedback));
  if (node.bounds !== undefined) return isWithin(node.bounds, amountOf(node.field, run, usage));
  return hasValue(node, textsOf(node, run));
}

/** Returns whether any of the texts matches any of the patterns. Without patterns, there must be a text. */
export function hasValue({ values }: Comparison, texts: readonly (string | undefined)[]): boolean {
  return texts.some(
    (text) => text !== undefined && (values?.some((value) => PATTERNS[value.kind](text, value.text)) ?? true),
  );
}

const PATTERNS: Readonly<Record<TextPattern['kind'], (text: string, part: string) => boolean>> = {
  equal: (text, part) => text === part,
  prefix: (text, part) => text.startsWith(part),
  suffix: (text, part) => text.endsWith(part),
  contains: (text, part) => text.includes(part),
};

function isWithin(bounds: readonly Bound[], value: number | undefined): boolean {
  return value !== undefined && bounds.every(({ operator, amount }) => OPERATORS[operator](value, amount));
}

const OPERATORS: Readonly<Record<Bound['operator'], (value: number, amount: number) => boolean>> = {
  '=': (value, amount) => value === amount,
  '>': (value, amount) => value > amount,
  '>=': (value, amount) => value >= amount,
  '<': (value, amount) => value < amount,
  '<=': (value, amount) => value <= amount,
};

export function isMatchingFeedback(comparison: Comparison, feedback: Feedback): boolean {
  const { key, score } = feedback;
  if (comparison.key !== key) return false;
  if (comparison.bounds !== undefined) {
    return isWithin(comparison.bounds, score === undefined ? undefined : Number(score));
  }
  return comparison.values === undefined || hasValue(comparison, feedbackTexts(feedback));
}

/** Returns the texts of a feedback that a filter compares. */
export function feedbackTexts({ score, value }: Pick<Feedback, 'score' | 'value'>): string[] {
  const number = score === undefined ? undefined : Number(score);
  return [score, number, value].filter((one) => one !== undefined).map(metadataText);
}

/** Returns the texts of a run that a filter compares. */
export function textsOf(
  { field, key = '' }: Comparison,
  { summary, metadata, error }: FilteredRun,
): readonly (string | undefined)[] {
  switch (field) {
    case 'type':
      return [summary.run_type];
    case 'project':
      return [projectOf(summary), summary.session_id];
    case 'trace':
      return [summary.trace_id];
    case 'run':
      return [summary.id];
    case 'tag':
      return summary.tags ?? [];
    case 'error':
      return [errorText(error)];
    case 'meta':
      return [metadataTextOf(metadata, key)];
    default:
      return [summary[field as 'name' | 'model' | 'status' | 'thread' | 'user']];
  }
}

function amountOf(
  field: Comparison['field'],
  { latencyUs }: FilteredRun,
  usage: Usage | undefined,
): number | undefined {
  if (field === 'latency') return latencyUs;
  if (field === 'tokens') return usage?.total_tokens;
  return field === 'cost' ? usage?.total_cost : usage?.[field as 'input_tokens' | 'output_tokens'];
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

/** Returns an error in the form in which filters compare it. */
export function errorText(error: string | undefined): string | undefined {
  return error === '' ? undefined : error?.toLowerCase();
}

/** Returns a metadata value as filters and groups compare it. Values other than strings are converted to JSON text. */
export function metadataText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function metadataTextOf(metadata: FilteredRun['metadata'], key: string): string | undefined {
  return metadata !== undefined && Object.hasOwn(metadata, key) ? metadataText(metadata[key]) : undefined;
}
