import { defined, definedOrNone } from '../../../payload/fields.ts';
import { MODEL_TYPES } from '../../../run/calls/same-call.ts';
import { isoTimestamp } from '../../../run/time.ts';
import { comparable } from '../comparable.ts';
import type { FeedbackFigures } from '../feedback.ts';
import type { Figures, GroupFigures, GroupKey, RankKey, RunFigures, Statistics } from '../query/query.ts';
import type { FilteredRun } from '../run-values.ts';
import type { RunStatus, TraceOutcome, Usage } from '../run-view.ts';
import { USAGE_KEYS } from '../summary.ts';
import { type Latencies, latenciesOf, percentilesOf } from './latencies.ts';
import { suggestedMetadata, suggestedValues } from './suggestions.ts';
import { type StartRange, type StatisticsPlan, type TimeBuckets, timeBucketsOf } from './time-buckets.ts';

/** Default of `StatisticsQuery.groups`. */
export const GROUPS = 50;

type SumKey = keyof Usage | 'unpriced_calls';
/** What the usage of runs adds up to: see `Figures`. */
export const SUM_KEYS: readonly SumKey[] = [...USAGE_KEYS, 'unpriced_calls'];

/** Totals in the order of `SUM_KEYS`. */
type UsageSums = number[];
export type StoredSums = Readonly<Record<SumKey, number>>;

/** Returns what a run with this counted usage adds to totals. */
function usageSumsOf(usage: { readonly [Key in keyof Usage]?: number | null } | undefined): UsageSums {
  const isUnpriced = (usage?.total_tokens ?? 0) > 0 && (usage?.total_cost ?? null) === null;
  return [...USAGE_KEYS.map((key) => usage?.[key] ?? 0), +isUnpriced];
}

export function sumsIn(row: StoredSums): UsageSums {
  return SUM_KEYS.map((key) => row[key]);
}

function addUsage(to: UsageSums, sums: readonly number[]): void {
  for (let at = 0; at < to.length; at += 1) to[at] = (to[at] ?? 0) + (sums[at] ?? 0);
}

/** Totals that are counted for all runs, for root runs and for model calls. */
interface Counts {
  readonly runs: number;
  readonly errors: number;
  readonly latencies: Latencies;
}

export interface TraceCounts extends Counts {
  readonly failed_below: number;
  readonly incomplete: number;
}

/** A run, or the total of several runs, to add to statistics. */
export interface Counted {
  readonly startUs: number;
  readonly pending: number;
  /** Usage that counts towards totals. */
  readonly usage: UsageSums;
  readonly all: Counts;
  readonly roots: TraceCounts | undefined;
  readonly modelCalls: Counts | undefined;
}

/** What the trace of a root run is counted as. */
export const ROOT_KINDS = ['other', 'error', 'failed_below', 'incomplete'] as const;
type RootKind = (typeof ROOT_KINDS)[number];

export interface RunKind {
  readonly isError: boolean;
  readonly isPending: boolean;
  readonly isModelCall: boolean;
  /** Undefined if the run is not the root of its trace. */
  readonly root: RootKind | undefined;
}

/**
 * Returns what a run is counted as. A further record of a call is neither an error nor a model call. `outcome` is that of the
 * trace if the run is its root.
 */
export function countedAs(
  status: RunStatus | null,
  type: string | null,
  outcome: TraceOutcome | null | undefined,
  isRepeat: boolean,
): RunKind {
  const isError = status === 'error' && !isRepeat;
  const root = ROOT_KINDS.find((kind) => kind === outcome && (kind !== 'error' || isError)) ?? 'other';
  return {
    isError,
    isPending: status === 'pending',
    isModelCall: MODEL_TYPES.includes(type ?? '') && !isRepeat,
    root: outcome ? root : undefined,
  };
}

/** Returns what runs with the same start time and kind add to statistics. */
export function countedOf(
  startUs: number,
  runs: number,
  { isError, isPending, isModelCall, root }: RunKind,
  usage: UsageSums,
  latencies: Latencies,
): Counted {
  const all = { runs, errors: isError ? runs : 0, latencies };
  const ofKind = (kind: RootKind): number => (root === kind ? runs : 0);
  const roots: TraceCounts = {
    ...all,
    errors: ofKind('error'),
    failed_below: ofKind('failed_below'),
    incomplete: ofKind('incomplete'),
  };
  return {
    startUs,
    pending: isPending ? runs : 0,
    usage,
    all,
    roots: root === undefined ? undefined : roots,
    modelCalls: isModelCall ? all : undefined,
  };
}

export function statisticsOf(
  runs: readonly (FilteredRun & { readonly usage: Usage | undefined })[],
  query: StatisticsPlan,
  isLimited: boolean,
): Statistics {
  let [firstUs, lastUs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { startUs } of runs) {
    firstUs = Math.min(firstUs, startUs);
    lastUs = Math.max(lastUs, startUs);
  }
  const { groupBy = 'name' } = query;
  const tally = new StatisticsTally(query, runs.length === 0 ? undefined : { firstUs, lastUs });
  for (const run of runs) {
    const { startUs, latencyUs, usage, summary, trace } = run;
    const { status, run_type, same_call_as } = summary;
    const outcome = summary === trace.root?.summary ? trace.figures(isLimited)?.outcome : undefined;
    const kind = countedAs(status, run_type, outcome, same_call_as !== undefined);
    const counted = countedOf(startUs, 1, kind, usageSumsOf(usage), latenciesOf(latencyUs));
    const isNameless = groupBy === 'name' && summary.internal === true && outcome === undefined;
    const groups = isNameless ? [] : groupsOf(suggestedValues(groupBy === 'run_type' ? 'type' : groupBy, run));
    tally.add(counted);
    tally.addToGroups(groups, counted);
    for (const { key, score } of run.feedback) {
      tally.addFeedback(groups, key, { count: 1, scores: score === undefined ? 0 : 1, sum: Number(score ?? 0) });
    }
  }
  return tally.statistics();
}

export function groupsInJson(groupBy: GroupKey, json: readonly string[] | FilteredRun['metadata']): readonly string[] {
  if (groupBy === 'tag') return groupsOf((json as readonly string[]).map(comparable));
  return groupsOf(suggestedMetadata(groupBy, json as FilteredRun['metadata']));
}

function groupsOf(values: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(values.flatMap((value) => value ?? []))];
}

/** Number of feedbacks with the same key, number of their scores, and total of the scores. */
export interface FeedbackSums {
  readonly count: number;
  readonly scores: number;
  readonly sum: number;
}

export class StatisticsTally {
  readonly #groupsMax: number;
  readonly #amountOf: (counted: Counted) => number;
  readonly #series: number;
  /** Time buckets. Undefined if there are no runs and the query has no time range. */
  readonly #time: TimeBuckets | undefined;
  readonly #total = new GroupTally();
  readonly #groups = new Map<string, Group>();
  readonly #buckets: FiguresTally[];

  constructor(query: StatisticsPlan, range: StartRange | undefined) {
    this.#groupsMax = query.groups ?? GROUPS;
    this.#amountOf = amountOf(query.rankBy ?? 'runs');
    this.#series = query.series ?? 0;
    this.#time = timeBucketsOf(query, range);
    this.#buckets = (this.#time?.starts ?? []).map(() => new FiguresTally());
  }

  get runs(): number {
    return this.#total.runs;
  }

  add(counted: Counted): void {
    this.#total.add(counted);
    this.#buckets[this.#indexOf(counted)]?.add(counted);
  }

  addToGroups(names: readonly string[], counted: Counted): void {
    for (const name of names) {
      const group = this.#groups.get(name) ?? { runs: 0, amount: 0, counted: [], feedback: [] };
      this.#groups.set(name, group);
      group.runs += counted.all.runs;
      group.amount += this.#amountOf(counted);
      group.counted.push(counted);
    }
  }

  /** Adds feedback to the totals and to groups. All runs must be added first. */
  addFeedback(names: readonly string[], key: string, sums: FeedbackSums): void {
    this.#total.addFeedback(key, sums);
    for (const name of names) this.#groups.get(name)?.feedback.push([key, sums]);
  }

  #indexOf({ startUs }: Counted): number {
    return this.#time?.indexOf(startUs) ?? -1;
  }

  /** Returns the groups to show, largest first. */
  #largestGroups(): [string, Group][] {
    const rankOf = ({ amount }: Group): number => Math.round(amount / AMOUNT_MIN);
    const sorted = [...this.#groups].sort(
      ([a, groupA], [b, groupB]) => rankOf(groupB) - rankOf(groupA) || groupB.runs - groupA.runs || (a < b ? -1 : 1),
    );
    return sorted.slice(0, this.#groupsMax);
  }

  #figuresOf({ counted, feedback }: Group, hasSeries: boolean): Omit<GroupFigures, 'group'> {
    const tally = new GroupTally();
    for (const one of counted) {
      tally.add(one);
      if (hasSeries) tally.addToBucket(this.#indexOf(one), one);
    }
    for (const [key, sums] of feedback) tally.addFeedback(key, sums);
    return { ...tally.figures(), ...(hasSeries && { buckets: tally.buckets(this.#buckets.length) }) };
  }

  statistics(): Statistics {
    const time = this.#time;
    return {
      ...(time === undefined ? {} : { from: isoTimestamp(time.fromUs), to: isoTimestamp(time.toUs) }),
      total: this.#total.figures(),
      groups: this.#largestGroups().map(([name, group], index) => ({
        group: name,
        ...this.#figuresOf(group, index < this.#series),
      })),
      buckets: this.#buckets.map((tally, index) => ({
        start_time: isoTimestamp(time?.starts[index] ?? 0),
        ...tally.figures(),
      })),
    };
  }
}

/** The runs of a group. Its figures are calculated only if they are shown, because each run may have a group of its own. */
interface Group {
  runs: number;
  /** The amount by which groups are ranked. */
  amount: number;
  readonly counted: Counted[];
  readonly feedback: [key: string, sums: FeedbackSums][];
}

function amountOf(rankBy: RankKey): (counted: Counted) => number {
  if (rankBy === 'runs' || rankBy === 'errors') return ({ all }) => all[rankBy];
  const index = USAGE_KEYS.indexOf(`total_${rankBy}`);
  return ({ usage }) => usage[index] ?? 0;
}

/** Adds up the latencies only once, when the figures are read. This is faster, and skips groups that are omitted. */
class RunsTally {
  runs = 0;
  errors = 0;
  readonly #latencies: Latencies[] = [];

  add({ runs, errors, latencies }: Counts): void {
    this.runs += runs;
    this.errors += errors;
    if (latencies !== '') this.#latencies.push(latencies);
  }

  figures(): RunFigures {
    const latency = percentilesOf(this.#latencies);
    return { runs: this.runs, errors: this.errors, ...(latency && { latency_ms: latency }) };
  }
}

class FiguresTally {
  readonly #all = new RunsTally();
  readonly #roots = new RunsTally();
  #failedBelow = 0;
  #incomplete = 0;
  readonly #modelCalls = new RunsTally();
  #pending = 0;
  readonly #usage: UsageSums = usageSumsOf(undefined);

  get runs(): number {
    return this.#all.runs;
  }

  add({ all, roots, modelCalls, pending, usage }: Counted): void {
    this.#all.add(all);
    if (roots !== undefined) {
      this.#roots.add(roots);
      this.#failedBelow += roots.failed_below;
      this.#incomplete += roots.incomplete;
    }
    if (modelCalls !== undefined) this.#modelCalls.add(modelCalls);
    this.#pending += pending;
    addUsage(this.#usage, usage);
  }

  figures(): Figures {
    return {
      ...this.#all.figures(),
      pending: this.#pending,
      ...usageIn(this.#usage),
      roots: { ...this.#roots.figures(), failed_below: this.#failedBelow, incomplete: this.#incomplete },
      model_calls: this.#modelCalls.figures(),
    };
  }
}

class GroupTally extends FiguresTally {
  readonly #feedback = new Map<string, FeedbackSums>();
  readonly #buckets = new Map<number, { runs: number; errors: number; readonly usage: UsageSums }>();

  addToBucket(index: number, { all, usage }: Counted): void {
    const bucket = this.#buckets.get(index) ?? { runs: 0, errors: 0, usage: usageSumsOf(undefined) };
    this.#buckets.set(index, bucket);
    bucket.runs += all.runs;
    bucket.errors += all.errors;
    addUsage(bucket.usage, usage);
  }

  addFeedback(key: string, { count, scores, sum }: FeedbackSums): void {
    const sums = this.#feedback.get(key) ?? { count: 0, scores: 0, sum: 0 };
    this.#feedback.set(key, { count: sums.count + count, scores: sums.scores + scores, sum: sums.sum + sum });
  }

  override figures(): Statistics['total'] {
    const feedback = [...this.#feedback]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([key, { count, scores, sum }]): FeedbackFigures => ({
          key,
          count,
          ...(scores > 0 && { average_score: sum / scores }),
        }),
      );
    return { ...super.figures(), ...(feedback.length > 0 && { feedback }) };
  }

  buckets(count: number): NonNullable<GroupFigures['buckets']> {
    return Array.from({ length: count }, (_, index) => {
      const { runs = 0, errors = 0, usage = [] } = this.#buckets.get(index) ?? {};
      return { runs, errors, ...usageIn(usage) };
    });
  }
}

/** Amounts below this are 0, because sums of costs have rounding errors. */
const AMOUNT_MIN = 1e-9;

function usageIn(sums: UsageSums): { usage?: Usage; unpriced_calls?: number } {
  const kinds = SUM_KEYS.map((key, index) => [key, sums[index] ?? 0] as const).filter(
    ([, sum]) => Math.abs(sum) >= AMOUNT_MIN,
  );
  const { unpriced_calls, ...usage } = Object.fromEntries(kinds) as Partial<Record<SumKey, number>>;
  return defined({ usage: definedOrNone(usage), unpriced_calls });
}
