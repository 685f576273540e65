import { parseIsoTimestamp } from '../../../run/time.ts';
import { grouped } from '../grouped.ts';
import type { CalledTool, RunOutline } from '../run-view.ts';
import { idsAbove } from './tree.ts';

/** A tool that no run records. Two model calls of its trace tell that it ran between them. */
export interface DerivedTool extends CalledTool {
  result: string;
  is_error: boolean;
  /** The nearest run above both model calls. Absent if there is none. */
  parent_run_id?: string;
  /** The model call with the call in its answer. */
  after_run_id: string;
  /** The model call with the result in its request. */
  before_run_id: string;
  /** The run below the parent before which the tool is shown: the second model call, or a run above it. */
  next_run_id: string;
  /** The tool ran between these times, but not necessarily all the time. */
  start_time: string;
  end_time: string;
}

/** A run, or a derived tool in the form of a run. */
export type TreeRun = RunOutline & { derived?: DerivedTool };

/** Maximum number of levels between a model call and the parent of a derived tool. */
const LEVELS_MAX = 64;
/** Maximum number of calls with the same id that wait for a result. Of more, the latest. */
const SAME_ID_MAX = 16;

/**
 * Returns the tools that only the messages of a trace's model calls tell of. A result belongs to the latest call before with
 * its id, preferably below the same run. A tool is left out if a run has the id of its call, or if a run with its name has
 * started between the model calls.
 */
export function derivedTools(outline: readonly RunOutline[]): DerivedTool[] {
  const ids = new Set(outline.map(({ id }) => id));
  const records = grouped(outline, ({ id, same_call_as: head = id }) => (ids.has(head) ? head : id));
  const runs = outline.filter(({ id }) => records.has(id)).map((run) => ({ run, startUs: timeUs(run.start_time) }));
  const calledIds = new Set(outline.flatMap(({ tools }) => tools?.calls ?? []).map(({ id }) => id));
  const recordedIds = new Set(outline.map(({ tool_call_id: id }) => id));
  const open = new Map<string, { call: CalledTool; run: RunOutline; startUs: number }[]>();
  const lastStartsUs = new Map<string, number>();
  const above = runsAbove(outline);
  const tools: DerivedTool[] = [];
  for (const { run, startUs } of runs.sort((a, b) => a.startUs - b.startUs)) {
    // Each record of a call may contain the messages in another format. The first with results or calls is read.
    const said = records.get(run.id)?.flatMap((record) => record.tools ?? []) ?? [];
    for (const { id, text, is_error } of said.find(({ results }) => results)?.results ?? []) {
      const calls = open.get(id) ?? [];
      const found = calls.findLast((one) => one.run.parent_run_id === run.parent_run_id) ?? calls.at(-1);
      if (found === undefined) continue;
      calls.splice(calls.indexOf(found), 1);
      if (recordedIds.has(id) || (lastStartsUs.get(found.call.name) ?? -1) >= found.startUs) continue;
      tools.push({ ...found.call, result: text, is_error: is_error === true, ...between(found.run, run, above) });
    }
    for (const call of said.find(({ calls }) => calls)?.calls ?? []) {
      open.set(call.id, [...(open.get(call.id) ?? []), { call, run, startUs }].slice(-SAME_ID_MAX));
    }
    const isOfOtherCall = calledIds.has(run.tool_call_id ?? '');
    if (run.run_type !== 'llm' && !isOfOtherCall) lastStartsUs.set(run.name, startUs);
  }
  return tools;
}

type Place = Omit<DerivedTool, keyof CalledTool | 'result' | 'is_error'>;

function between(after: RunOutline, before: RunOutline, above: (id: string) => readonly string[]): Place {
  const aboveFirst = new Set(above(after.id));
  const path = above(before.id);
  const at = path.findIndex((id) => aboveFirst.has(id));
  const { end_time: end = '' } = after;
  return {
    ...(at >= 0 && { parent_run_id: path[at] as string }),
    after_run_id: after.id,
    before_run_id: before.id,
    next_run_id: (at < 0 ? path.at(-1) : path[at - 1]) ?? before.id,
    // A result may be sent before a streamed answer has been read to its end.
    start_time: timeUs(end) > 0 && timeUs(end) <= timeUs(before.start_time) ? end : after.start_time,
    end_time: before.start_time,
  };
}

function timeUs(time: string): number {
  return parseIsoTimestamp(time) ?? 0;
}

/** Returns a function that returns the ids of the runs above a run, the nearest first. */
function runsAbove(outline: readonly RunOutline[]): (id: string) => readonly string[] {
  const heads = new Map(outline.map(({ id, same_call_as }) => [id, same_call_as]));
  const parents = new Map(outline.map(({ id, parent_run_id: up = '' }) => [id, heads.get(up) ?? up]));
  return (id) => idsAbove(parents, id, LEVELS_MAX);
}

/** Adds the derived tools to the runs of a trace, each before the run that follows it. */
export function withDerivedTools(runs: readonly RunOutline[], tools: readonly DerivedTool[]): TreeRun[] {
  const before = grouped(tools, ({ next_run_id: id }) => id);
  return runs.flatMap((run) => [...(before.get(run.id) ?? []).map(rowOf), run]);
}

function rowOf(derived: DerivedTool): TreeRun {
  const { id, name, result, is_error, parent_run_id: above, before_run_id: next, start_time, end_time } = derived;
  const run = { id: `${next} ${id}`, name, run_type: 'tool', start_time, end_time, derived };
  const outcome = is_error ? ({ status: 'error', error: result } as const) : ({ status: 'success' } as const);
  return { ...run, ...outcome, ...(above && { parent_run_id: above }) };
}
