import * as z from 'zod/v4';
import { rootIn } from '../../base/forest.ts';
import { defined, exactJson, isFields } from '../../payload/fields.ts';
import type { Figures, GroupKey, Statistics } from '../../receiver/domain/query/query.ts';
import { GROUP_KEYS, isGroupKey } from '../../receiver/domain/query/query-keys.ts';
import { PAYLOAD_FIELDS, type RunDetails, type RunOutline } from '../../receiver/domain/run-view.ts';
import { sumOfUsage } from '../../receiver/domain/summary.ts';
import { headWithRecords, type Records } from '../../receiver/domain/trace/call-records.ts';
import { headlineOf } from '../../receiver/domain/trace/headline.ts';
import { CommandFailure } from '../command-line.ts';
import { completeId, costText, feedbackLine, foundRun, idArgument, payloadOf, recordsOfCall } from '../query/show.ts';
import { checkedFilter } from '../query/traces.ts';
import type { RunSource } from '../stores.ts';
import { counted, visibleLines } from '../terminal-text.ts';
import { durationOf, tokensText, usageTexts } from '../tree.ts';
import { type Answer, fitting, RECORDED_MAX, short } from './answer.ts';
import { OFFSET, SELECTION, type Tool, tool } from './tool.ts';
import { isFailed } from './trace-tools.ts';

const FIELDS = ['error', 'metadata', ...PAYLOAD_FIELDS] as const;
type Field = (typeof FIELDS)[number];

/** Maximum number of characters of a field, if the call names no field. Events are only counted. */
const PREVIEWS: Readonly<Record<Field, number>> = {
  error: 5_000,
  metadata: 4_000,
  inputs: 8_000,
  outputs: 8_000,
  events: 0,
};

const showRun = tool({
  name: 'show_run',
  description:
    'Shows a run: facts, error with stack, metadata, inputs and outputs. Long fields are cut: pass field and offset to read on.',
  input: z.strictObject({
    id: z.string().describe('id of a run'),
    field: z.enum(FIELDS).optional().describe('the only field to show'),
    offset: OFFSET.describe('number of characters of the field to skip'),
  }),
  use: ({ id, field, offset }, read) =>
    read(async (source) => {
      const records = await recordsOfCall(source, await foundRun(source, await completeId(source, idArgument(id))));
      if (field !== undefined) return sliceOf(source, records, field, offset);
      const run = headWithRecords(records);
      const sections = [factsOf(run)];
      const notes: string[] = [];
      for (const one of FIELDS) {
        const text = (await fieldText(source, records, one)) ?? '';
        const shown = wellFormed(text.slice(0, PREVIEWS[one]));
        if (shown !== '') sections.push(`${one}:\n${shown}`);
        if (shown.length < text.length) notes.push(moreText(run, one, shown.length, text.length));
      }
      return { recorded: sections.join('\n\n'), notes };
    }),
});

async function sliceOf(source: RunSource, records: Records<RunDetails>, field: Field, offset: number): Promise<Answer> {
  const [run] = records;
  const text = await fieldText(source, records, field);
  if (text === undefined) throw new CommandFailure(`the run ${run.id} has no ${field}`);
  const shown = wellFormed(text.slice(offset, offset + RECORDED_MAX));
  const end = offset + shown.length;
  if (shown === '') throw new CommandFailure(`the ${field} of the run has only ${counted(text.length, 'character')}`);
  return { recorded: shown, notes: end < text.length ? [moreText(run, field, end, text.length)] : [] };
}

/** Removes the first half of a character at the end, if the second half is missing. */
function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udbff]$/, '');
}

function moreText({ id }: RunDetails, field: Field, shown: number, length: number): string {
  return `${length - shown} more characters of ${field}: call show_run with id ${id}, field ${field} and offset ${shown}.`;
}

async function fieldText(source: RunSource, records: Records<RunDetails>, field: Field): Promise<string | undefined> {
  const { error, extra } = headWithRecords(records);
  const value =
    field === 'error' ? error : field === 'metadata' ? extra?.metadata : await payloadOf(source, records, field);
  if (value === undefined) return undefined;
  return visibleLines(typeof value === 'string' ? value : exactJson(value, 2));
}

function factsOf(run: RunDetails): string {
  const facts = {
    name: run.name,
    run: run.id,
    trace: run.trace_id,
    parent: run.parent_run_id,
    type: run.run_type,
    status: run.status,
    started: run.start_time,
    duration: durationOf(run),
    model: run.model,
    tokens: tokensText(run),
    cost: costText(run),
    tags: run.tags?.join(', '),
    attachments: run.attachments?.map(({ name, size }) => `${name} (${size} bytes)`).join(', '),
    feedback: run.feedback?.map(feedbackLine).join('; '),
  };
  return Object.entries(defined(facts))
    .map(([label, text]) => `${label}: ${short(text, 250)}`)
    .join('\n');
}

/** Number of characters of a value in a comparison, and of the equal text before its first difference. */
const [VALUE_MAX, CONTEXT] = [300, 40];

const compareRuns = tool({
  name: 'compare_runs',
  description:
    'Compares two runs, or two traces by their root runs and totals: model, parameters, metadata, status, duration, tokens, cost, inputs and outputs. Shows only the differences.',
  input: z.strictObject({
    first: z.string().describe('id of a run or a trace'),
    second: z.string().describe('id of a run or a trace'),
    offset: OFFSET.describe('number of differences to skip'),
  }),
  use: ({ first, second, offset }, read) =>
    read(async (source) => {
      const [before, after] = [await comparedOf(source, first), await comparedOf(source, second)];
      const paths = [...new Set([...before.keys(), ...after.keys()])];
      const lines = paths.flatMap((path) => differenceOf(path, before.get(path), after.get(path)));
      if (lines.length <= offset) return { recorded: '', notes: [`There are ${lines.length} differences.`] };
      const shown = fitting(lines.slice(offset));
      const end = offset + shown.length;
      const more = `call compare_runs with first ${first}, second ${second} and offset ${end}`;
      return {
        recorded: shown.join('\n'),
        notes: end < lines.length ? [`${lines.length - end} more differences: ${more}.`] : [],
      };
    }),
});

/** Returns the values of a run or a trace that are compared, by their path. */
async function comparedOf(source: RunSource, id: string): Promise<Map<string, string>> {
  const wanted = await completeId(source, idArgument(id));
  const outline = await source.outline(wanted);
  const records = await recordsOfCall(source, await foundRun(source, rootIn(outline)?.id ?? wanted));
  const run = headWithRecords(records);
  const { runtime: _, ...extra } = run.extra ?? {};
  return leavesOf({
    ...(outline.length > 0 && totalsOf(outline)),
    name: run.name,
    type: run.run_type,
    model: run.model,
    status: run.status,
    error: run.error && headlineOf(run.error),
    duration: durationOf(run),
    ...(outline.length === 0 && { usage: usageTexts(run).join(', ') }),
    ...extra,
    inputs: await payloadOf(source, records, 'inputs'),
    outputs: await payloadOf(source, records, 'outputs'),
  });
}

function totalsOf(outline: readonly RunOutline[]): Record<string, unknown> {
  const usages = outline.map(({ usage, usage_counts: counts }) => (counts === false ? undefined : usage));
  return {
    runs: outline.length,
    'failed runs': outline.filter(isFailed).length,
    'total usage': usageTexts({ usage: usages.reduce(sumOfUsage, undefined) } as RunOutline).join(', '),
  };
}

/** Returns the texts of all values that have no values below them, by their path, for example `inputs.messages.0`. */
function leavesOf(value: object): Map<string, string> {
  const leaves = new Map<string, string>();
  const pending: [path: string, value: unknown][] = Object.entries(value).reverse();
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [path, inner] = next;
    const below = isFields(inner) || Array.isArray(inner) ? Object.entries(inner) : [];
    for (const [key, one] of below.toReversed()) pending.push([`${path}.${key}`, one]);
    if (below.length === 0 && inner !== undefined) {
      leaves.set(path, typeof inner === 'string' ? inner : exactJson(inner));
    }
  }
  return leaves;
}

function differenceOf(path: string, before: string | undefined, after: string | undefined): string[] {
  if (before === after) return [];
  let same = 0;
  while (before !== undefined && same < before.length && before[same] === after?.[same]) same += 1;
  const start = same <= 2 * CONTEXT ? 0 : same - CONTEXT;
  const shown = (text: string | undefined): string =>
    text === undefined ? 'absent' : (start > 0 ? '…' : '') + short(text.slice(start), VALUE_MAX);
  return [`${short(path, VALUE_MAX)}: ${shown(before)}  →  ${shown(after)}`];
}

const statistics = tool({
  name: 'statistics',
  description: 'Counts runs, errors, latencies, tokens and costs of all matching runs, in total and by group.',
  input: z.strictObject({
    ...SELECTION,
    group_by: z
      .string()
      .refine(isGroupKey, `expected ${GROUP_KEYS.join(', ')} or meta.KEY`)
      .default('name')
      .describe(`${GROUP_KEYS.join(', ')} or meta.KEY`),
    groups: z.number().int().min(1).max(200).default(20).describe('maximum number of groups, the largest first'),
  }),
  async use({ project, filter, group_by: groupBy, groups }, read) {
    const query = defined({ project, filter: checkedFilter(filter), groupBy: groupBy as GroupKey, groups });
    const found = await read((source) => source.statistics(query));
    const lines = [
      `total: ${figuresText(found.total)}`,
      `traces: ${tracesText(found.total.roots)}`,
      `model calls: ${countsText(found.total.model_calls)}`,
      `by ${groupBy}:`,
      ...found.groups.map((group) => `  ${short(group.group)}: ${figuresText(group)}`),
    ].map((line) => short(line, 2_000));
    const shown = fitting(lines);
    const isCut = found.groups.length === groups || shown.length < lines.length;
    const more = 'There may be more groups: call statistics with a larger number of groups, or a narrower filter.';
    return { recorded: shown.join('\n'), notes: isCut ? [more] : [] };
  },
});

function tracesText({ failed_below, incomplete, ...counts }: Figures['roots']): string {
  return [
    countsText(counts),
    ...(failed_below > 0 ? [`${failed_below} failed below`] : []),
    ...(incomplete > 0 ? [`${incomplete} incomplete`] : []),
  ].join(' · ');
}

function countsText({ runs, errors, latency_ms: latency }: Figures['model_calls']): string {
  const times =
    latency === undefined ? [] : [`median ${Math.round(latency.p50)} ms, 95 % ${Math.round(latency.p95)} ms`];
  return [counted(runs, 'run'), `${errors} failed`, ...times].join(' · ');
}

function figuresText({ pending, usage, unpriced_calls: unpriced = 0, feedback = [], ...counts }: Statistics['total']) {
  const ratings = feedback.map(
    ({ key, count, average_score: score }) =>
      `feedback ${short(key)} × ${count}${score === undefined ? '' : `, average ${score.toFixed(2)}`}`,
  );
  return [
    countsText(counts),
    ...(pending > 0 ? [`${pending} not ended`] : []),
    ...usageTexts({ ...(usage && { usage }) }),
    ...(unpriced > 0 ? [`${counted(unpriced, 'call')} without a price`] : []),
    ...ratings,
  ].join(' · ');
}

export const runTools: readonly Tool[] = [showRun, compareRuns, statistics];
