import { isoTimestamp, parseIsoTimestamp } from '../../run/time.ts';
import type { Figures, GroupKey, Statistics, StatisticsQuery } from '../query/query.ts';
import { type FilteredRun, projectOf } from './run-filter.ts';
import { sumOfUsage } from './run-summary.ts';
import type { RunStatus, RunSummary, Usage } from './run-view.ts';

const GROUPS = 50;
const BUCKETS = 60;

/** A run as figures count it. */
export interface CountedRun {
  readonly startUs: number;
  readonly latencyUs: number | undefined;
  readonly status: RunStatus;
  /** The usage, or undefined if it is not included in sums. */
  readonly usage: Usage | undefined;
  /** The group, or undefined if the run lacks the value to group by. */
  readonly group: string | undefined;
}

/** When the first and the last of the runs that are asked for started. */
export interface StartRange {
  readonly firstUs: number;
  readonly lastUs: number;
}

/** What the runs come to, in all, by group and by time. They are those that the query asks for, in any order. */
export function statisticsOf(
  runs: readonly (FilteredRun & Pick<CountedRun, 'usage'>)[],
  query: StatisticsQuery,
): Statistics {
  let [firstUs, lastUs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { startUs } of runs) {
    if (startUs < firstUs) firstUs = startUs;
    if (startUs > lastUs) lastUs = startUs;
  }
  const { groupBy = 'name' } = query;
  const tally = new StatisticsTally(query, runs.length === 0 ? undefined : { firstUs, lastUs });
  for (const { startUs, latencyUs, summary, usage } of runs) {
    const { status } = summary;
    tally.add({ startUs, latencyUs, status, usage, group: groupOf(groupBy, summary) });
  }
  return tally.statistics();
}

function groupOf(groupBy: GroupKey, summary: RunSummary): string | undefined {
  return groupBy === 'project' ? projectOf(summary) : summary[groupBy];
}

/** Statistics as they add up run by run; of a run no more is kept than its latency. */
export class StatisticsTally {
  readonly #groupsMax: number;
  /** Undefined while it is not known what time the buckets cover: there is no run, and none was asked for. */
  readonly #time: { readonly fromUs: number; readonly toUs: number; readonly lengthUs: number } | undefined;
  readonly #total = new FiguresTally();
  readonly #groups = new Map<string, FiguresTally>();
  readonly #buckets: FiguresTally[] = [];

  constructor(query: StatisticsQuery, range: StartRange | undefined) {
    const { groups = GROUPS, buckets = BUCKETS, startedFrom = '', startedBefore = '' } = query;
    this.#groupsMax = groups;
    const fromUs = parseIsoTimestamp(startedFrom) ?? range?.firstUs;
    const toUs = parseIsoTimestamp(startedBefore) ?? range?.lastUs;
    if (fromUs === undefined || toUs === undefined) return;
    this.#time = { fromUs, toUs, lengthUs: Math.max(1, (toUs - fromUs) / buckets) };
    this.#buckets = Array.from({ length: buckets }, () => new FiguresTally());
  }

  add(run: CountedRun): void {
    this.#total.add(run);
    if (run.group !== undefined) {
      const group = this.#groups.get(run.group) ?? new FiguresTally();
      this.#groups.set(run.group, group);
      group.add(run);
    }
    if (this.#time === undefined) return;
    const at = Math.floor((run.startUs - this.#time.fromUs) / this.#time.lengthUs);
    this.#buckets[Math.min(this.#buckets.length - 1, at)]?.add(run);
  }

  statistics(): Statistics {
    const time = this.#time;
    return {
      ...(time === undefined ? {} : { from: isoTimestamp(time.fromUs), to: isoTimestamp(time.toUs) }),
      total: this.#total.figures(),
      groups: [...this.#groups]
        .sort(([a, { runs: runsOfA }], [b, { runs: runsOfB }]) => runsOfB - runsOfA || (a < b ? -1 : 1))
        .slice(0, this.#groupsMax)
        .map(([group, tally]) => ({ group, ...tally.figures() })),
      buckets: this.#buckets.map((tally, at) => ({
        start_time: isoTimestamp(Math.round((time?.fromUs ?? 0) + at * (time?.lengthUs ?? 0))),
        ...tally.figures(),
      })),
    };
  }
}

class FiguresTally {
  runs = 0;
  #pending = 0;
  #errors = 0;
  #usage: Usage | undefined;
  readonly #latenciesUs: number[] = [];

  add({ status, latencyUs, usage }: CountedRun): void {
    this.runs += 1;
    if (status === 'pending') this.#pending += 1;
    if (status === 'error') this.#errors += 1;
    if (latencyUs !== undefined) this.#latenciesUs.push(latencyUs);
    if (usage !== undefined) this.#usage = sumOfUsage(this.#usage, usage);
  }

  figures(): Figures {
    const figures: Figures = { runs: this.runs, pending: this.#pending, errors: this.#errors };
    if (this.#latenciesUs.length > 0) figures.latency_ms = percentilesOf(Float64Array.from(this.#latenciesUs).sort());
    if (this.#usage !== undefined) figures.usage = this.#usage;
    return figures;
  }
}

/** By the nearest rank: the smallest latency that so many percent of the runs do not exceed. */
function percentilesOf(sortedUs: Float64Array): NonNullable<Figures['latency_ms']> {
  const at = (percent: number): number => (sortedUs[Math.ceil((percent / 100) * sortedUs.length) - 1] ?? 0) / 1_000;
  return { p50: at(50), p90: at(90), p95: at(95), p99: at(99), max: at(100) };
}
