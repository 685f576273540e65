import { parseExact } from '../../../../payload/fields.ts';
import { mayBeCut } from '../../../domain/comparable.ts';
import type { GroupKey, Statistics, StatisticsQuery } from '../../../domain/query/query.ts';
import { metadataKeyOf } from '../../../domain/query/query-keys.ts';
import type { RunStatus, TraceOutcome } from '../../../domain/run-view.ts';
import type { Latencies } from '../../../domain/statistics/latencies.ts';
import {
  countedAs,
  countedOf,
  type FeedbackSums,
  groupsInJson,
  StatisticsTally,
  type StoredSums,
  sumsIn,
} from '../../../domain/statistics/statistics.ts';
import { type StartRange, type TimeBuckets, timeBucketsOf } from '../../../domain/statistics/time-buckets.ts';
import { USAGE_KEYS } from '../../../domain/summary.ts';
import { RunFlag } from '../../../domain/trace/trace-summary.ts';
import type { Parsed } from '../../../filter/run-filter.ts';
import type { Row, SqliteConnection } from '../file/database.ts';
import { COUNTS_USAGE, IS_MODEL } from '../run-row.ts';
import { type Condition, outcomeSql } from './lists.ts';

/** See `QueryStore.statistics`. Counts all runs in the range by time bucket, group and kind. */
export function statisticsIn(
  connection: SqliteConnection,
  query: Parsed<StatisticsQuery>,
  conditions: Condition,
  isLimited: boolean,
): Statistics {
  const starts = startRangeOf(connection, conditions);
  const tally = new StatisticsTally(query, starts);
  const time = timeBucketsOf(query, starts);
  if (starts === undefined || time === undefined) return tally.statistics();
  const grouping = groupingOf(query.groupBy ?? 'name');
  count(connection, conditions, time, tally, grouping, outcomeSql('runs', isLimited));
  addFeedback(connection, conditions, tally, grouping);
  return tally.statistics();
}

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

/** Runs of one time bucket, group and kind. */
type CountedRow = Row & {
  readonly bucket: number;
  readonly group_key: string | null;
  readonly status: RunStatus;
  /** Null for types that are not those of model calls. */
  readonly run_type: string | null;
  /** Null if the runs are no roots. */
  readonly outcome: TraceOutcome | null;
  readonly is_repeat: number;
  readonly runs: number;
  readonly latencies: Latencies | null;
} & StoredSums;

const SUMS = [
  ...USAGE_KEYS.map((key) => `total(iif(${COUNTS_USAGE}, ${key}, 0)) AS ${key}`),
  `sum(${COUNTS_USAGE} AND total_tokens > 0 AND total_cost IS NULL) AS unpriced_calls`,
].join(', ');

function count(
  connection: SqliteConnection,
  { sql, params }: Condition,
  time: TimeBuckets,
  tally: StatisticsTally,
  { column, groupsOf }: Grouping,
  outcome: string,
): void {
  const rows = connection.each<CountedRow>(
    `SELECT ${bucketIndex(time)} AS bucket, ${column} AS group_key, status, iif(${IS_MODEL}, run_type, NULL) AS run_type,
      ${outcome} AS outcome, same_call IS NOT NULL AS is_repeat, count(*) AS runs, group_concat(latency, '') AS latencies, ${SUMS}
      FROM runs WHERE ${sql} GROUP BY 1, 2, 3, 4, 5, 6`,
    ...params,
  );
  for (const row of rows) {
    const kind = countedAs(row.status, row.run_type, row.outcome, row.is_repeat === 1);
    const counted = countedOf(time.starts[row.bucket] ?? 0, row.runs, kind, sumsIn(row), row.latencies ?? '');
    tally.add(counted);
    if (row.group_key !== null) tally.addToGroups(groupsOf(row.group_key), counted);
  }
}

/** Returns an SQL expression for the index of a run's time bucket. */
function bucketIndex({ starts, stepUs }: TimeBuckets): string {
  const [firstUs = 0, secondUs = firstUs + stepUs] = starts;
  const isRegular = starts.every((startUs, at) => at === 0 || startUs === secondUs + (at - 1) * stepUs);
  // The first bucket can be shorter, and a run can start at the end of the last bucket.
  if (isRegular) return `max(0, min((start_us - ${secondUs - stepUs}) / ${stepUs}, ${starts.length - 1}))`;
  return `CASE ${starts
    .slice(1)
    .map((startUs, at) => `WHEN start_us < ${startUs} THEN ${at}`)
    .join(' ')} ELSE ${starts.length - 1} END`;
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

function groupingOf(groupBy: GroupKey): Grouping {
  if (groupBy === 'name')
    return {
      column: `iif(runs.is_root OR runs.flags & ${RunFlag.INTERNAL} = 0, runs.name, NULL)`,
      groupsOf: (name) => [name],
    };
  const key = metadataKeyOf(groupBy);
  if (groupBy !== 'tag' && key === undefined) return { column: `runs.${groupBy}`, groupsOf: (value) => [value] };
  const whole = groupBy === 'tag' ? 'tags' : 'extra.metadata';
  // The key is the same text in JSON and in a path of SQLite.
  const isPlain = key !== undefined && JSON.stringify(key) === `"${key}"` && !mayBeCut(key);
  const path = isPlain ? `${whole}."${key.replaceAll("'", "''")}"` : whole;
  return {
    column: `(SELECT fields -> '$.${path}' FROM details WHERE details.n = runs.n)`,
    groupsOf: (json) => groupsInJson(groupBy, isPlain ? { [key]: parseExact(json) } : parseExact(json)),
  };
}
