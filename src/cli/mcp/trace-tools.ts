import * as z from 'zod/v4';
import { depthFirst, forestOf, rootIn } from '../../base/forest.ts';
import { defined } from '../../payload/fields.ts';
import { delay, monotonicNowMs, wallNowMs } from '../../platform/timers.ts';
import type { RunOutline, TraceOutcome, TraceSummary } from '../../receiver/domain/run-view.ts';
import { foldedCalls, withoutInternal } from '../../receiver/domain/trace/call-records.ts';
import { derivedTools, withDerivedTools } from '../../receiver/domain/trace/derived-tools.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import { CommandFailure, UsageError } from '../command-line.ts';
import { completeId, foundRun, idArgument } from '../query/show.ts';
import { checkedFilter, failedBelow } from '../query/traces.ts';
import type { RunSource } from '../stores.ts';
import { counted } from '../terminal-text.ts';
import { sourceTexts } from '../tree.ts';
import { type Answer, fitting, RECORDED_MAX, runLine } from './answer.ts';
import { OFFSET, type Read, SELECTION, type Tool, tool } from './tool.ts';

const findTraces = tool({
  name: 'find_traces',
  description: 'Lists recorded traces, the latest first: id, name, status, start, duration, tokens, cost, error, runs.',
  input: z.strictObject({
    ...SELECTION,
    // So many lines always fit into an answer.
    limit: z.number().int().min(1).max(40).default(20),
    cursor: z.string().optional().describe('from the answer to the same call, to get the next traces'),
  }),
  async use({ project, filter: given, limit, cursor }, read) {
    const filter = checkedFilter(given);
    const { items, next } = await read((source) => source.traces(defined({ project, filter, limit, cursor })));
    if (items.length === 0) {
      const below = await read((source) => failedBelow(source, defined({ project, filter })));
      return { recorded: '', notes: ['No trace matches.', ...below] };
    }
    // Times in the filter are absolute, because all pages must have the same filter.
    const same = ['project', 'limit', ...(filter === undefined ? [] : [`filter ${JSON.stringify(filter)}`])].join(', ');
    return {
      recorded: items.map(traceLine).join('\n'),
      notes: next === undefined ? [] : [`More traces match: call find_traces with the same ${same} and cursor ${next}`],
    };
  },
});

/** Maximum number of failed runs that are listed before the tree, and the depth up to which lines are indented. */
const [FAILED_MAX, INDENT_MAX] = [20, 30];

const showTrace = tool({
  name: 'show_trace',
  description:
    'Shows the runs of a trace as an indented tree, after a list of the failed runs, the deepest first. Tools that only the messages tell of are lines between the model calls. Without an id, shows the latest trace. show_run shows a run with its inputs and outputs.',
  input: z.strictObject({
    id: z.string().optional().describe('id of a trace, or the start or end of the id of a recent trace'),
    internal: z.boolean().default(false).describe('also show the steps that frameworks have added for themselves'),
    offset: OFFSET.describe('number of runs to skip'),
  }),
  use: ({ id: given, ...shown }, read) =>
    read(async (source) => {
      const traceId = await completeId(source, given === undefined ? undefined : idArgument(given));
      const outline = await source.outline(traceId);
      // Also accepts the id of a run, and shows its trace.
      const id = outline.length > 0 ? traceId : (await foundRun(source, traceId)).trace_id;
      const [summary] = (await source.traces({ filter: `trace:${id}` })).items;
      return treeOf(id, summary?.outcome, outline.length > 0 ? outline : await source.outline(id), shown);
    }),
});

function treeOf(
  traceId: string,
  outcome: TraceOutcome | undefined,
  outline: readonly RunOutline[],
  { internal, offset }: { internal: boolean; offset: number },
): Answer {
  const { runs: calls, records } = foldedCalls(outline);
  const all = withDerivedTools(calls, derivedTools(outline));
  const { runs, leftOut } = internal ? { runs: all, leftOut: 0 } : withoutInternal(all);
  const placed = [...depthFirst(forestOf(runs))].map(([{ run }, depth]) => ({ run, depth }));
  const nodes = placed.filter(({ run }) => run.derived === undefined);
  const failed = nodes.filter(({ run }) => isFailed(run)).sort((a, b) => b.depth - a.depth);
  const listed = offset === 0 ? failed.slice(0, FAILED_MAX) : [];
  const head = [
    `trace ${traceId}, ${outcome ?? 'unknown outcome'}, ${counted(outline.length, 'run')}, ${failed.length} failed`,
    ...(listed.length === 0 ? [] : ['failed runs, the deepest first:', ...listed.map(({ run }) => runLine(run)), '']),
  ].join('\n');
  // A derived tool is no run, so its line belongs to that of the next run.
  const lines: string[] = [];
  let derived = '';
  for (const { run, depth } of placed) {
    const line = '  '.repeat(Math.min(depth, INDENT_MAX)) + runLine(run, sourceTexts(run, records.get(run.id) ?? []));
    if (run.derived === undefined) lines.push(derived + line);
    derived = run.derived === undefined ? '' : `${derived}${line}\n`;
  }
  const shown = fitting(lines.slice(offset), RECORDED_MAX - head.length);
  const next = offset + shown.length;
  const notes: string[] = [];
  const [unlisted, unseen] = [offset === 0 ? failed.length - listed.length : 0, nodes.length - next];
  if (unlisted > 0) notes.push(`${unlisted} more failed runs are only in the tree.`);
  if (leftOut > 0) notes.push(`${counted(leftOut, 'internal step')} left out: call show_trace with internal true.`);
  const same = `id ${traceId}${internal ? ', internal true' : ''}`;
  if (unseen > 0) notes.push(`${unseen} more runs: call show_trace with ${same} and offset ${next}.`);
  return { recorded: [head, ...shown].join('\n'), notes };
}

const POLL_MS = 500;

const waitForTrace = tool({
  name: 'wait_for_trace',
  description:
    'Waits for the first finished trace that starts after this call, or after a given trace. Call it, then run the program; or run the program, and pass the id of the trace before it.',
  input: z.strictObject({
    after_trace_id: z.string().optional().describe('id of the trace after which the new trace starts'),
    ...SELECTION,
    timeout_seconds: z.number().min(0).max(300).default(50),
  }),
  async use({ after_trace_id: after, project, filter, timeout_seconds: timeoutS }, read, signal) {
    const endMs = monotonicNowMs() + timeoutS * 1_000;
    const startedAt = new Date(wallNowMs()).toISOString();
    const known = after === undefined ? undefined : await rootOf(read, after);
    const query = defined({
      project,
      filter: checkedFilter(`since:${known?.start_time ?? startedAt} ${filter}`),
      order: 'ascending' as const,
      limit: 100,
    });
    for (;;) {
      signal.throwIfAborted();
      const found = await read((source) => firstFinished(source, query, known)).catch(ignoreMissing);
      if (found !== undefined) {
        return { recorded: traceLine(found), notes: [`show_trace with id ${found.trace_id} shows its runs.`] };
      }
      const leftMs = endMs - monotonicNowMs();
      if (leftMs <= 0) {
        const since = after === undefined ? 'after this call' : `after the trace ${after}`;
        const none = `No matching trace that started ${since} finished within ${timeoutS} seconds.`;
        return { recorded: '', notes: [none] };
      }
      await delay(Math.min(POLL_MS, leftMs), signal, true);
    }
  },
});

async function firstFinished(
  source: RunSource,
  query: Parameters<RunSource['traces']>[0],
  known: RunOutline | undefined,
): Promise<TraceSummary | undefined> {
  for (let page = await source.traces(query); ; page = await source.traces({ ...query, cursor: page.next })) {
    const found = page.items.find(
      (one) =>
        one.status !== 'pending' && one.trace.pending === 0 && (known === undefined || startUs(one) > startUs(known)),
    );
    if (found !== undefined || page.next === undefined) return found;
  }
}

/** The program that is awaited may start the receiver. */
function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof CommandFailure) || error instanceof UsageError) throw error;
}

function rootOf(read: Read, id: string): Promise<RunOutline> {
  return read(async (source) => {
    const traceId = await completeId(source, idArgument(id));
    const root = rootIn(await source.outline(traceId));
    if (root === undefined) throw new CommandFailure(`no trace has the id ${traceId}`);
    return root;
  });
}

/** Filters are accurate only to the millisecond, in which other traces may start. */
function startUs({ start_time }: RunOutline): number {
  return parseIsoTimestamp(start_time) ?? 0;
}

export function isFailed({ status, same_call_as }: RunOutline): boolean {
  return status === 'error' && same_call_as === undefined;
}

function traceLine(summary: TraceSummary): string {
  const { runs, errors, usage } = summary.trace;
  const { usage: _, ...run } = summary;
  return runLine({ ...run, id: summary.trace_id, ...(usage && { usage }) }, [
    `started ${summary.start_time}`,
    counted(runs, 'run'),
    `${errors} failed`,
  ]);
}

export const traceTools: readonly Tool[] = [findTraces, showTrace, waitForTrace];
