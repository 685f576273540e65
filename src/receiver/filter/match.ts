import { cachedShareOf } from '../domain/cost/usage.ts';
import type { Feedback } from '../domain/feedback.ts';
import type { TextField } from '../domain/query/query.ts';
import { type FilteredRun, feedbackTexts, filteredTexts, isOfProject } from '../domain/run-values.ts';
import type { Usage } from '../domain/run-view.ts';
import type { Bound, Comparison, FilterNode, TextPattern } from './filter.ts';
import type { RunFilter } from './run-filter.ts';

/** Returns whether a run matches all conditions but `search`. In a list of traces, `usage` is that of the trace. */
export function matchesFilter(filter: RunFilter, run: FilteredRun, usage: Usage | undefined): boolean {
  return (
    isInProjects(filter, run) &&
    run.startUs >= filter.range.fromUs &&
    run.startUs < filter.range.beforeUs &&
    filter.conditions.every((node) => matchesNode(filter, node, run, usage))
  );
}

export function isInProjects({ projects }: RunFilter, { summary }: FilteredRun): boolean {
  return projects.every((project) => isOfProject(summary, project));
}

function matchesNode(filter: RunFilter, node: FilterNode, run: FilteredRun, usage: Usage | undefined): boolean {
  if ('all' in node) return node.all.every((one) => matchesNode(filter, one, run, usage));
  if ('some' in node) return node.some.some((one) => matchesNode(filter, one, run, usage));
  if ('not' in node) return !matchesNode(filter, node.not, run, usage);
  if ('anyRun' in node) {
    return run.trace.runs.some(
      (one) => isInProjects(filter, one) && matchesNode(filter, node.anyRun, one, one.summary.usage),
    );
  }
  if (node.field === 'root') return run === run.trace.root;
  if (node.field === 'internal') return run.summary.internal === true;
  if (node.field === 'outcome') return hasValue(node, [run.trace.figures(filter.isLimited)?.outcome]);
  if (node.field === 'feedback') return run.feedback.some((feedback) => isMatchingFeedback(node, feedback));
  if (node.bounds !== undefined) return isWithin(node.bounds, amountOf(node.field, run, usage));
  return hasValue(node, filteredTexts(node.field as TextField, node.key ?? '', run));
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

function amountOf(field: Comparison['field'], { latencyUs }: FilteredRun, usage: Usage | undefined) {
  if (field === 'latency') return latencyUs;
  if (field === 'tokens') return usage?.total_tokens;
  if (field === 'cached') return cachedShareOf(usage);
  return field === 'cost' ? usage?.total_cost : usage?.[field as 'input_tokens' | 'output_tokens'];
}
