import { defined } from '../../../payload/fields.ts';
import { grouped } from '../grouped.ts';
import type { CostSource, PayloadField, RunDetails, RunOutline } from '../run-view.ts';

/** The runs of a trace, with one run for the records of each call. */
export interface FoldedRuns {
  /** All runs but the further records of calls. The runs below a further record are below the head of its call. */
  readonly runs: readonly RunOutline[];
  /** The further records of each call, by the id of its head. */
  readonly records: ReadonlyMap<string, readonly RunOutline[]>;
}

/** Folds the records of each call into its head, which gets what only other records have. */
export function foldedCalls(runs: readonly RunOutline[]): FoldedRuns {
  const ids = new Set(runs.map(({ id }) => id));
  const further = runs.filter(({ same_call_as: head = '' }) => ids.has(head));
  const records = grouped(further, ({ same_call_as: head = '' }) => head);
  const heads = new Map(further.map(({ id, same_call_as: head = '' }) => [id, head]));
  const shown = runs.flatMap((run) => {
    if (heads.has(run.id)) return [];
    const head = heads.get(run.parent_run_id ?? '');
    const others = records.get(run.id);
    const call = others === undefined ? run : headWithRecords([run, ...others]);
    return [head === undefined ? call : { ...call, parent_run_id: head }];
  });
  return { runs: shown, records };
}

/** The runs of a trace without the internal steps of frameworks. */
export interface WithoutInternal<Run> {
  /** The runs below a step that is left out are below the nearest run above that is left. */
  readonly runs: readonly Run[];
  readonly leftOut: number;
}

/** Returns whether a run is an internal step of a framework that has succeeded and is not a root. */
export function isLeftOut({ internal, status }: RunOutline, hasParent: boolean): boolean {
  return internal === true && status === 'success' && hasParent;
}

/** Leaves out the internal steps of frameworks, see `isLeftOut`. */
export function withoutInternal<Run extends RunOutline>(runs: readonly Run[]): WithoutInternal<Run> {
  const ids = new Set(runs.map(({ id }) => id));
  const leftOut = runs.filter((run) => isLeftOut(run, ids.has(run.parent_run_id ?? '')));
  const parents = new Map(leftOut.map(({ id, parent_run_id: parent = '' }) => [id, parent]));
  const nearest = (id: string): string => {
    // A set, because parents may form a cycle.
    const passed = new Set<string>();
    let at = id;
    for (; parents.has(at) && !passed.has(at); at = parents.get(at) as string) passed.add(at);
    for (const step of passed) parents.set(step, at);
    return at;
  };
  const shown = runs.flatMap(({ ...run }) => {
    if (run.parent_run_id !== undefined) run.parent_run_id = nearest(run.parent_run_id);
    return parents.has(run.id) ? [] : [run];
  });
  return { runs: shown, leftOut: parents.size };
}

/** Names the sources of the records of a call, for example `langchain, openai, fetch`. */
export function sourcesOf(records: readonly RunOutline[]): string {
  return [...new Set(records.flatMap(({ recorded_by: source }) => source ?? []))].join(', ');
}

/** The records of a call, the head first. */
export type Records<Run> = readonly [Run, ...Run[]];

/** Returns the head of a call, with what only other records have. */
export function headWithRecords<Run extends RunOutline & CostSource>(records: Records<Run>): Run {
  const { usage_counts: _, ...head } = records[0];
  const model = records.find((run) => run.model !== undefined)?.model;
  const error = head.status === 'success' ? undefined : records.find((run) => run.error !== undefined)?.error;
  const firstTokens = records.flatMap(({ first_token_time: time }) => time ?? []);
  const [firstToken] = firstTokens.sort((a, b) => Date.parse(a) - Date.parse(b));
  const counting = records.find((run) => run.usage !== undefined && run.usage_counts !== false);
  const { usage, usage_counts, price_table, no_cost } = counting ?? records[0];
  const facts = { model, error, first_token_time: firstToken, usage, usage_counts, price_table, no_cost };
  return { ...head, ...defined(facts) } as Run;
}

/** Returns the first record of a call that has content in a field, or the head. `{}` is no content. */
export function recordWith(records: Records<RunDetails>, field: PayloadField): RunDetails {
  return records.find(({ payload_sizes: sizes }) => (sizes[field] ?? 0) > 2) ?? records[0];
}
