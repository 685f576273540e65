import { parseExact } from '../../../../payload/fields.ts';
import type { GroupKey, Statistics, StatisticsQuery, TimeRange } from '../../../domain/query/query.ts';
import type { RunStatus, TraceOutcome } from '../../../domain/run-view.ts';
import { latenciesOf } from '../../../domain/statistics/latencies.ts';
import {
  countedAs,
  countedOf,
  type FeedbackSums,
  type GroupSize,
  groupsInJson,
  ROOT_KINDS,
  StatisticsTally,
  sumsIn,
  totalOf,
  usageSumsOf,
} from '../../../domain/statistics/statistics.ts';
import type { StartRange, StatisticsPlan } from '../../../domain/statistics/time-buckets.ts';
import { USAGE_KEYS } from '../../../domain/summary.ts';
import { RunFlag } from '../../../domain/trace/trace-summary.ts';
import type { Comparison, FilterNode } from '../../../filter/filter.ts';
import type { Parsed, RunFilter } from '../../../filter/run-filter.ts';
import { all, conditionOf, type Dialect } from '../../../filter/sql.ts';
import { countedKeyIn, isLabel, METADATA } from '../counted-keys.ts';
import {
  COUNTERS,
  INTERNAL,
  MINUTE_US,
  PERIODS,
  REPEAT,
  type SumsRow,
  VALUE_COUNTERS,
  VALUE_PERIOD,
  type ValueSumsRow,
} from '../counters.ts';
import type { Row, SqliteConnection, SqlValue } from '../file/database.ts';
import { COUNTS_USAGE, type UsageColumns } from '../run-row.ts';
import { remembered, SPELLING } from './conditions.ts';
import type { Condition } from './lists.ts';

const LONGEST = PERIODS.at(-1) ?? 1;

/** Maximum number of runs to scan for time buckets shorter than a minute. Scanning this many runs takes about 0.1 s. */
const SCANNED_RUNS_MAX = 20_000;

/** Group keys for which there are counters of minutes. */
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
 * Calculates statistics. Whole minutes are read from counters if the query filters only by project, name, type, model,
 * status and root. Values of counted keys are read from counters of whole hours if the query filters only by project. Runs
 * are scanned for all other filters and groups, and for incomplete periods at both ends of the range. If there are many
 * runs, time buckets are at least a minute long, because counters cover whole minutes.
 */
export function statisticsIn(
  connection: SqliteConnection,
  tenant: number,
  filter: RunFilter,
  query: Parsed<StatisticsQuery>,
  isProjectId: boolean,
  conditionsFor: (range: TimeRange) => Condition,
): Statistics {
  const { groupBy = 'name', series = 0 } = query;
  const key = countedKeyIn(connection, tenant, groupBy);
  const canGroup = COUNTED.includes(groupBy) || (key !== undefined && filter.conditions.length === 0);
  const canCount = canGroup && !isProjectId && filter.search === undefined && filter.conditions.every(isCounted);
  const counters = canCount ? new CounterReader(connection, tenant, filter) : undefined;
  const coarse = counters === undefined ? filter.range : counters.coarseRange(filter.range);
  const starts = coarse && startRangeOf(connection, conditionsFor(coarse));
  if (starts === undefined) return new StatisticsTally(query, starts).statistics();
  const { fromUs, beforeUs } = filter.range;
  // Counters cover whole periods, so the range is extended to whole periods within the range of the query.
  const periodUs = (key === undefined ? 1 : VALUE_PERIOD) * MINUTE_US;
  const range = {
    fromUs: Math.max(fromUs, Math.floor(starts.firstUs / periodUs) * periodUs),
    beforeUs: Math.min(beforeUs, (Math.floor(starts.lastUs / periodUs) + 1) * periodUs),
  };
  // The time buckets of values are at least as long as the periods of their counters.
  const stepUsMin = series > 0 ? periodUs : MINUTE_US;
  let tally = new StatisticsTally(query, starts);
  if (!tally.isWhole(stepUsMin) && (counters?.runsIn(starts) ?? 0) > SCANNED_RUNS_MAX) {
    tally = new StatisticsTally({ ...query, stepUsMin }, starts);
    // In a time zone with half hours, the counters of values do not fit.
    if (!tally.isWhole(stepUsMin)) tally = new StatisticsTally({ ...query, stepUsMin, timeZone: 'UTC' }, starts);
  }
  const grouping = groupingOf(groupBy, key);
  if (counters === undefined || !tally.isWhole(stepUsMin)) scan(connection, conditionsFor(range), tally, grouping);
  else {
    const periods = PERIODS.filter((period) => tally.isWhole(period * MINUTE_US)).reverse();
    for (const segment of segmentsOf(range, periods)) {
      if ('period' in segment) counters.add(segment, key === undefined ? groupBy : undefined, tally);
      else scan(connection, conditionsFor(segment.range), tally, key === undefined ? grouping : undefined);
    }
    if (key !== undefined) {
      const hours = segmentsOf(range, [VALUE_PERIOD]);
      for (const segment of hours) {
        if ('range' in segment) scan(connection, conditionsFor(segment.range), tally, grouping, false);
      }
      const whole = hours.find((segment) => 'period' in segment);
      if (whole !== undefined) counters.addValues(whole, key, tally, query);
    }
  }
  addFeedback(connection, conditionsFor(range), tally, grouping);
  return tally.statistics();
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
  root: `(kind % ${REPEAT} > 0)`,
};

/** Compares the columns of counters. `isCounted` admits no other conditions. */
const COUNTER_DIALECT: Dialect<SqlValue> = {
  ...SPELLING,
  column: (field) => COUNTED_COLUMNS[field as Comparison['field']] ?? 'NULL',
  own: () => undefined,
  anyRun: () => ({ sql: 'NULL', params: [] }),
};

/** Divides a range into as few periods as possible. The period lengths must be sorted, longest first. */
function segmentsOf(range: TimeRange, periods: readonly number[]): Segment[] {
  const shortest = periods.at(-1) ?? 1;
  const from = Math.ceil(range.fromUs / MINUTE_US / shortest) * shortest;
  const before = Math.floor(range.beforeUs / MINUTE_US / shortest) * shortest;
  if (from >= before) return [{ range }];
  return [
    { range: { fromUs: range.fromUs, beforeUs: from * MINUTE_US } },
    ...wholePeriods(from, before, periods),
    { range: { fromUs: before * MINUTE_US, beforeUs: range.beforeUs } },
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

class CounterReader {
  readonly #connection: SqliteConnection;
  readonly #condition: Condition;

  constructor(connection: SqliteConnection, tenant: number, filter: RunFilter) {
    this.#connection = connection;
    const { projects, conditions } = filter;
    this.#condition = all([
      { sql: 'tenant = ?', params: [tenant] },
      ...projects.map((project) => ({ sql: 'project = ?', params: [project] })),
      ...conditions.map((node) => conditionOf(node, COUNTER_DIALECT)),
    ]);
  }

  /** Returns the range from the first to the last of the longest periods that contain runs. */
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
        ...this.#condition.params,
      )?.start;
    const [first, last] = [start('ASC'), start('DESC')];
    if (first === undefined || last === undefined) return undefined;
    return { fromUs: Math.max(fromUs, first * MINUTE_US), beforeUs: Math.min(beforeUs, (last + LONGEST) * MINUTE_US) };
  }

  runsIn({ firstUs, lastUs }: StartRange): number {
    return this.#connection.number(
      `SELECT coalesce(sum(runs), 0) FROM counters WHERE period = 1 AND start BETWEEN ? AND ? AND ${this.#condition.sql}`,
      Math.floor(firstUs / MINUTE_US),
      Math.floor(lastUs / MINUTE_US),
      ...this.#condition.params,
    );
  }

  add({ period, from, before }: Periods, groupBy: GroupKey | undefined, tally: StatisticsTally): void {
    const rows = this.#connection.each<CounterRow>(
      `SELECT start, status, run_type, kind, ${groupBy ?? "''"} AS group_key, ${COUNTERS.totals} FROM counters
        WHERE period = ? AND start >= ? AND start < ? AND ${this.#condition.sql} GROUP BY 1, 2, 3, 4, 5`,
      period,
      from,
      before,
      ...this.#condition.params,
    );
    for (const row of rows) {
      const root = ROOT_KINDS[(row.kind % REPEAT) - 1];
      const kind = { ...countedAs(row.status, row.run_type, undefined, (row.kind & REPEAT) !== 0), root };
      const counted = countedOf(row.start * MINUTE_US, row.runs, kind, sumsIn(row), row.latencies);
      tally.add(counted);
      const hasGroup = groupBy === 'model' ? row.group_key !== '' : groupBy !== 'name' || row.kind < INTERNAL;
      if (groupBy !== undefined && hasGroup) tally.addToGroups([row.group_key], counted);
    }
  }

  /** Adds the largest values of a counted key to their groups, but not to the totals. */
  addValues(
    { from, before }: Periods,
    key: number,
    tally: StatisticsTally,
    { rankBy = 'runs', series = 0 }: StatisticsPlan,
  ): void {
    const hasSeries = series > 0;
    const condition = all([
      { sql: 'key = ? AND start >= ? AND start < ?', params: [key, from, before] },
      this.#condition,
    ]);
    const sizes = this.#connection.all<GroupSize & { value: string }>(
      `SELECT value, sum(${totalOf(rankBy)}) AS amount, sum(runs) AS runs FROM value_counters
        WHERE ${condition.sql} GROUP BY value`,
      ...condition.params,
    );
    // Reading all figures only of the largest groups takes a third of the time.
    const values = tally.largestGroups(new Map(sizes.map(({ value, ...size }) => [value, size])));
    const { sql, params } = all([
      condition,
      { sql: 'value IN (SELECT value FROM json_each(?))', params: [JSON.stringify(values)] },
    ]);
    const rows = this.#connection.each<ValueSumsRow & { start: number; value: string }>(
      `SELECT ${hasSeries ? 'start' : 'min(start)'} AS start, value, ${VALUE_COUNTERS.totals} FROM value_counters
        WHERE ${sql} GROUP BY ${hasSeries ? '1, 2' : '2'}`,
      ...params,
    );
    for (const row of rows) {
      tally.addToGroups([row.value], {
        startUs: row.start * MINUTE_US,
        pending: row.pending,
        usage: sumsIn(row),
        all: row,
        roots: {
          runs: row.roots,
          errors: row.root_errors,
          failed_below: row.root_failed_below,
          incomplete: row.root_incomplete,
          latencies: row.root_latencies,
        },
        modelCalls: { runs: row.model_calls, errors: row.model_errors, latencies: row.model_latencies },
      });
    }
  }
}

type CounterRow = SumsRow & {
  readonly start: number;
  readonly status: RunStatus;
  readonly run_type: string;
  readonly kind: number;
  readonly group_key: string;
};

/** Returns the first and the last start. The queries sort by start time, so SQLite stops at the first match. */
function startRangeOf(connection: SqliteConnection, { sql, params }: Condition): StartRange | undefined {
  const startUs = (order: 'ASC' | 'DESC'): number | undefined =>
    connection.one<{ start_us: number }>(
      `SELECT start_us FROM runs WHERE ${sql} ORDER BY start_us ${order} LIMIT 1`,
      ...params,
    )?.start_us;
  const firstUs = startUs('ASC');
  return firstUs === undefined ? undefined : { firstUs, lastUs: startUs('DESC') ?? firstUs };
}

interface ScannedRow extends Row, UsageColumns {
  start_us: number;
  end_us: number | null;
  status: RunStatus;
  /** Null if the run is no root. */
  outcome: TraceOutcome | null;
  run_type: string;
  group_key: string | null;
  /** Sum of `REPEATED` and `COUNTS`, because each column takes time in each row. */
  flags: number;
}

const REPEATED = 1;
const COUNTS = 2;

/** Adds runs to their groups, and to the totals unless `isTotal` is false. */
function scan(
  connection: SqliteConnection,
  { sql, params }: Condition,
  tally: StatisticsTally,
  { column, groupsOf }: Grouping = NO_GROUPS,
  isTotal = true,
): void {
  const rows = connection.each<ScannedRow>(
    `SELECT start_us, end_us, status, outcome, run_type, ${column} AS group_key,
      (same_call IS NOT NULL) * ${REPEATED} + ${COUNTS_USAGE} * ${COUNTS} AS flags, ${USAGE_KEYS.join(', ')} FROM runs WHERE ${sql}`,
    ...params,
  );
  for (const row of rows) {
    const latencyUs = row.end_us === null ? undefined : Math.max(0, row.end_us - row.start_us);
    const has = (flag: number): boolean => (row.flags & flag) !== 0;
    const kind = countedAs(row.status, row.run_type, row.outcome, has(REPEATED));
    const usage = usageSumsOf(has(COUNTS) ? row : undefined);
    const counted = countedOf(row.start_us, 1, kind, usage, latenciesOf(latencyUs));
    if (isTotal) tally.add(counted);
    if (row.group_key !== null) tally.addToGroups(groupsOf(row.group_key), counted);
  }
}

/** Adds the feedback on runs. Starts with the feedback or the runs, depending on which are fewer. */
function addFeedback(
  connection: SqliteConnection,
  { sql, params }: Condition,
  tally: StatisticsTally,
  { column, groupsOf }: Grouping,
): void {
  // The largest key is close to the number of rows, and takes no time to read.
  const isFirst = connection.number('SELECT max(n) FROM feedback') < tally.runs;
  const tables = isFirst ? 'feedback CROSS JOIN runs' : 'runs CROSS JOIN feedback';
  const rows = connection.each<FeedbackSums & { key: string; group_key: string | null }>(
    `SELECT feedback.key AS key, ${column} AS group_key, count(*) AS count, count(score) AS scores, total(score) AS sum
      FROM ${tables} ON feedback.run = runs.n WHERE ${sql} GROUP BY 1, 2`,
    ...params,
  );
  for (const { key, group_key, ...sums } of rows)
    tally.addFeedback(group_key === null ? [] : groupsOf(group_key), key, sums);
}

interface Grouping {
  /** SQL expression for the value by which runs are grouped. */
  readonly column: string;
  readonly groupsOf: (value: string) => readonly string[];
}

const NO_GROUPS: Grouping = { column: 'NULL', groupsOf: () => [] };

/** `key` is the number of the key if all runs are counted by it. */
function groupingOf(groupBy: GroupKey, key: number | undefined): Grouping {
  if (groupBy === 'name')
    return {
      column: `iif(runs.is_root OR runs.flags & ${RunFlag.INTERNAL} = 0, runs.name, NULL)`,
      groupsOf: (name) => [name],
    };
  if (!isLabel(groupBy)) return { column: `runs.${groupBy}`, groupsOf: (value) => [value] };
  if (key !== undefined) return { column: `runs.labels -> '$.${key}'`, groupsOf: remembered(JSON.parse, 10_000) };
  return { column: METADATA, groupsOf: (json) => groupsInJson(groupBy, parseExact(json)) };
}
