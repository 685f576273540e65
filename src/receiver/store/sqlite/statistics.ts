import type { Comparison, FilterNode } from '../../query/filter.ts';
import type { GroupKey, Ranged, Statistics, StatisticsQuery, TimeRange } from '../../query/query.ts';
import { metadataKeyOf } from '../../query/query-keys.ts';
import type { RunFilter } from '../run-filter.ts';
import type { RunStatus } from '../run-view.ts';
import { groupsInJson, latenciesOf, type StartRange, StatisticsTally, usageSumsOf } from '../statistics.ts';
import { conditionOf, ofText } from './conditions.ts';
import { MINUTE_US, PERIODS, SUMS, type SumsRow } from './counters.ts';
import type { Row, SqliteConnection } from './database.ts';
import { all, type Condition } from './lists.ts';
import { COUNTS_USAGE, usageIn } from './run-row.ts';

const LONGEST = PERIODS.at(-1) ?? 1;

/** Maximum number of runs to scan for time buckets shorter than a minute. Scanning this many runs takes about 0.1 s. */
const SCANNED_RUNS_MAX = 20_000;

/** Group keys for which there are counters. Runs are scanned for all other keys. */
const COUNTED: readonly GroupKey[] = ['name', 'model', 'run_type', 'project', 'status'];

/** Part of a time range. Whole periods are read from counters, and other parts from runs. */
type Segment = Periods | { readonly range: TimeRange };

interface Periods {
  /** Length of the period in minutes. `from` and `before` are also in minutes. */
  readonly period: number;
  readonly from: number;
  readonly before: number;
}

/**
 * Calculates statistics. Whole minutes are read from counters if the query filters only by project, name, type, model
 * and status. Runs are scanned for all other filters, and for incomplete minutes at both ends of the range. If there
 * are many runs, time buckets are at least a minute long, because counters cover whole minutes.
 */
export function statisticsIn(
  connection: SqliteConnection,
  tenant: number,
  filter: RunFilter,
  query: Ranged<StatisticsQuery>,
  isProjectId: boolean,
  conditionsFor: (range: TimeRange) => Condition,
): Statistics {
  const { groupBy = 'name' } = query;
  const canCount = !isProjectId && hasCounters(filter) && COUNTED.includes(groupBy);
  const counters = canCount ? new CounterReader(connection, tenant, filter) : undefined;
  const coarse = counters === undefined ? filter.range : counters.coarseRange(filter.range);
  const starts = coarse && startRangeOf(connection, conditionsFor(coarse));
  if (starts === undefined) return new StatisticsTally(query, starts).statistics();
  const { fromUs, beforeUs } = filter.range;
  const [firstMinute, lastMinute] = [minuteOf(starts.firstUs), minuteOf(starts.lastUs)];
  // Counters cover whole minutes. The range starts and ends at whole minutes, unless the query limits the range
  // further.
  const range = {
    fromUs: Math.max(fromUs, firstMinute * MINUTE_US),
    beforeUs: Math.min(beforeUs, (lastMinute + 1) * MINUTE_US),
  };
  let tally = new StatisticsTally(query, starts);
  if (tally.stepUs < MINUTE_US && (counters?.runsIn(firstMinute, lastMinute) ?? 0) > SCANNED_RUNS_MAX) {
    tally = new StatisticsTally({ ...query, buckets: tally.bucketsOf(MINUTE_US) }, starts);
  }
  const stepMinutes = tally.stepUs / MINUTE_US;
  const segments = counters === undefined || stepMinutes < 1 ? [] : segmentsOf(range, stepMinutes);
  for (const segment of segments.length > 0 ? segments : [{ range }]) {
    if ('period' in segment) counters?.add(segment, groupBy, tally);
    else scan(connection, conditionsFor(segment.range), groupBy, tally);
  }
  return tally.statistics();
}

function minuteOf(startUs: number): number {
  return Math.floor(startUs / MINUTE_US);
}

function hasCounters({ traceId, conditions, search }: RunFilter): boolean {
  return traceId === undefined && search === undefined && conditions.every(isCounted);
}

/** Returns whether the counters contain all fields that a condition compares. */
function isCounted(node: FilterNode): boolean {
  if ('field' in node) return Object.hasOwn(COUNTED_COLUMNS, node.field);
  if ('not' in node) return isCounted(node.not);
  return 'anyRun' in node ? false : ('all' in node ? node.all : node.some).every(isCounted);
}

/** SQL expressions for the fields of a filter. They are null if the runs have no value. */
const COUNTED_COLUMNS: Readonly<Partial<Record<Comparison['field'], string>>> = {
  name: 'name',
  type: 'run_type',
  model: "nullif(model, '')",
  status: 'status',
};

/** Divides a range into as few periods as possible. No period crosses the boundary of a time bucket. */
function segmentsOf({ fromUs, beforeUs }: TimeRange, stepMinutes: number): Segment[] {
  const from = Math.ceil(fromUs / MINUTE_US);
  const before = Math.floor(beforeUs / MINUTE_US);
  if (from >= before) return [];
  const periods = PERIODS.filter((period) => stepMinutes % period === 0).reverse();
  return [
    { range: { fromUs, beforeUs: from * MINUTE_US } },
    ...wholePeriods(from, before, periods),
    { range: { fromUs: before * MINUTE_US, beforeUs } },
  ];
}

/** Divides a range of whole minutes into periods. The period lengths must be sorted, longest first. */
function wholePeriods(from: number, before: number, [period, ...shorter]: readonly number[]): Segment[] {
  if (period === undefined || from >= before) return [];
  const first = Math.ceil(from / period) * period;
  const last = Math.floor(before / period) * period;
  if (first >= last) return wholePeriods(from, before, shorter);
  return [
    ...wholePeriods(from, first, shorter),
    { period, from: first, before: last },
    ...wholePeriods(last, before, shorter),
  ];
}

/** Reads the counters in a tenant that match a filter. */
class CounterReader {
  readonly #connection: SqliteConnection;
  readonly #condition: Condition;

  constructor(connection: SqliteConnection, tenant: number, filter: RunFilter) {
    this.#connection = connection;
    const { projects, conditions } = filter;
    this.#condition = all([
      { sql: 'tenant = ?', values: [tenant] },
      ...projects.map((project) => ({ sql: 'project = ?', values: [project] })),
      ...conditions.map((node) =>
        conditionOf(node, (leaf) => {
          const { field = 'name', values = [] } = leaf as Partial<Comparison>;
          return ofText(COUNTED_COLUMNS[field] ?? '', values);
        }),
      ),
    ]);
  }

  /**
   * Returns the range from the first to the last period that contains runs. The range is approximate, because only the
   * longest periods are read.
   */
  coarseRange({ fromUs, beforeUs }: TimeRange): TimeRange | undefined {
    const from = Number.isFinite(fromUs) ? Math.floor(fromUs / MINUTE_US) - LONGEST : -Number.MAX_SAFE_INTEGER;
    const before = Number.isFinite(beforeUs) ? Math.ceil(beforeUs / MINUTE_US) : Number.MAX_SAFE_INTEGER;
    const start = (order: 'ASC' | 'DESC'): number | undefined =>
      this.#connection.one<{ start: number }>(
        `SELECT start FROM counters WHERE period = ? AND start > ? AND start < ? AND ${this.#condition.sql}
          ORDER BY start ${order} LIMIT 1`,
        LONGEST,
        from,
        before,
        ...this.#condition.values,
      )?.start;
    const [first, last] = [start('ASC'), start('DESC')];
    if (first === undefined || last === undefined) return undefined;
    return {
      fromUs: Math.max(fromUs, first * MINUTE_US),
      beforeUs: Math.min(beforeUs, (last + LONGEST) * MINUTE_US),
    };
  }

  /** Returns the number of runs between two minutes, both inclusive. */
  runsIn(first: number, last: number): number {
    return this.#connection.number(
      `SELECT coalesce(sum(runs), 0) FROM counters WHERE period = 1 AND start BETWEEN ? AND ? AND ${this.#condition.sql}`,
      first,
      last,
      ...this.#condition.values,
    );
  }

  add({ period, from, before }: Periods, groupBy: GroupKey, tally: StatisticsTally): void {
    const rows = this.#connection.each<SumsRow & { start: number; status: RunStatus; grp: string }>(
      `SELECT start, status, ${groupBy} AS grp, ${SUMS} FROM counters
        WHERE period = ? AND start >= ? AND start < ? AND ${this.#condition.sql} GROUP BY 1, 2, 3`,
      period,
      from,
      before,
      ...this.#condition.values,
    );
    for (const row of rows) {
      const { start, status, grp, runs, latencies } = row;
      const groups = grp === '' && groupBy === 'model' ? [] : [grp];
      tally.add({ startUs: start * MINUTE_US, status, runs, usage: usageSumsOf(row), latencies }, groups);
    }
  }
}

/**
 * Returns the first and the last start time of all matching runs. The query sorts by start time, so SQLite can stop at
 * the first match.
 */
function startRangeOf(connection: SqliteConnection, { sql, values }: Condition): StartRange | undefined {
  const startUs = (order: 'ASC' | 'DESC'): number | undefined =>
    connection.one<{ start_us: number }>(
      `SELECT start_us FROM runs WHERE ${sql} ORDER BY start_us ${order} LIMIT 1`,
      ...values,
    )?.start_us;
  const firstUs = startUs('ASC');
  return firstUs === undefined ? undefined : { firstUs, lastUs: startUs('DESC') ?? firstUs };
}

interface ScannedRow extends Row {
  start_us: number;
  end_us: number | null;
  status: RunStatus;
  grp: string | null;
  counts: number;
}

function scan(
  connection: SqliteConnection,
  { sql, values }: Condition,
  groupBy: GroupKey,
  tally: StatisticsTally,
): void {
  const { column, groupsOf } = groupingOf(groupBy);
  const rows = connection.each<ScannedRow>(
    `SELECT start_us, end_us, status, ${column} AS grp, ${COUNTS_USAGE} AS counts,
      input_tokens, output_tokens, total_tokens, total_cost FROM runs WHERE ${sql}`,
    ...values,
  );
  for (const row of rows) {
    const latencyUs = row.end_us === null ? undefined : Math.max(0, row.end_us - row.start_us);
    const usage = row.counts === 1 ? usageIn(row) : undefined;
    const { start_us: startUs, status } = row;
    const counted = { startUs, status, runs: 1, usage: usageSumsOf(usage), latencies: latenciesOf(latencyUs) };
    tally.add(counted, row.grp === null ? [] : groupsOf(row.grp));
  }
}

/** Returns the SQL expression for the value by which runs are grouped, and a function that reads the groups from it. */
function groupingOf(groupBy: GroupKey): { column: string; groupsOf: (value: string) => readonly string[] } {
  if (groupBy !== 'tag' && metadataKeyOf(groupBy) === undefined) {
    return { column: `runs.${groupBy}`, groupsOf: (value) => [value] };
  }
  const path = groupBy === 'tag' ? '$.tags' : '$.extra.metadata';
  return {
    column: `(SELECT fields -> '${path}' FROM details WHERE details.n = runs.n)`,
    groupsOf: (json) => groupsInJson(groupBy, JSON.parse(json)),
  };
}
