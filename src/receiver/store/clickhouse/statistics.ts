import type { GroupKey, Ranged, Statistics, StatisticsQuery } from '../../query/query.ts';
import { metadataKeyOf } from '../../query/query-keys.ts';
import { LATENCY_BUCKETS, type Latencies, latenciesOfCounts } from '../latencies.ts';
import { filterOf } from '../run-filter.ts';
import { MODEL_TYPES, USAGE_KEYS } from '../run-summary.ts';
import type { RunStatus, Usage } from '../run-view.ts';
import { type Counted, countedOf, type FeedbackSums, GROUPS, StatisticsTally, usageSumsOf } from '../statistics.ts';
import type { Scope } from '../store.ts';
import { type StartRange, type TimeBuckets, timeBucketsOf } from '../time-buckets.ts';
import { allOf, conditionOf } from './conditions.ts';
import { type ClickHouse, integer, joined, type Sql, sql, string, strings } from './connection.ts';
import { searchConditions } from './search.ts';

/** Status of the runs in a row, by code. The statistics do not distinguish other statuses. */
const STATUSES: readonly RunStatus[] = ['success', 'error', 'pending'];
/** The kind of a run is its status, plus these numbers for root runs and for model calls. */
const ROOT = 4;
const MODEL_CALL = 8;
const KINDS = 16;
const KIND = sql(
  `transform(status, ?, range(${STATUSES.length}), 0) + is_root * ${ROOT} + (run_type IN (?)) * ${MODEL_CALL}`,
  strings(STATUSES),
  strings(MODEL_TYPES),
);
/** Number of values of `latency_bucket`: 0 for runs that have not ended, and the index of each bucket + 1. */
const LATENCY_VALUES = LATENCY_BUCKETS + 1;

/** See `QueryStore.statistics`. ClickHouse counts the runs with the same time bucket, kind and latency bucket. */
export async function statistics(db: ClickHouse, scope: Scope, query: Ranged<StatisticsQuery>): Promise<Statistics> {
  const { tenant } = scope;
  const filter = filterOf(scope, query);
  const search = await searchConditions(db, tenant, filter, 'runs');
  const conditions = allOf([conditionOf(tenant, filter), ...search]);
  const starts = await startRangeOf(db, query, conditions);
  const tally = new StatisticsTally(query, starts);
  const time = timeBucketsOf(query, starts);
  if (time === undefined) return tally.statistics();
  // Runs that have arrived since the range was read are not counted.
  const inRange = allOf([conditions, sql('start_us BETWEEN ? AND ?', integer(time.fromUs), integer(time.toUs))]);
  const grouping = groupingOf(query.groupBy ?? 'name');
  const [totals, { names, rows, feedback }] = await Promise.all([
    countsIn(db, inRange, time, sql('1'), true),
    groupsIn(db, tenant, inRange, time, grouping, query),
  ]);
  for (const row of totals) tally.add(countedIn(row, time));
  for (const row of rows) tally.addToGroups(names.slice(row.grp - 1, row.grp), countedIn(row, time));
  for (const { key, groups, ...sums } of feedback) tally.addFeedback(groups, key, sums);
  return tally.statistics();
}

/** Returns the first and the last start time of the runs if the query's time range does not limit both. */
async function startRangeOf(
  db: ClickHouse,
  { range: { fromUs, beforeUs } }: Ranged<StatisticsQuery>,
  conditions: Sql,
): Promise<StartRange | undefined> {
  if (Number.isFinite(fromUs) && Number.isFinite(beforeUs)) return undefined;
  const [row] = await db.rows<StartRange & { runs: number }>(
    sql(
      `SELECT count() AS runs, min(start_us) AS firstUs, max(start_us) AS lastUs FROM runs FINAL
        WHERE ${conditions.sql}`,
      ...conditions.params,
    ),
  );
  return row === undefined || row.runs === 0 ? undefined : row;
}

/** SQL expressions for the groups of a run. */
interface Grouping {
  /** The group. If a run is in several groups, there is a row for each group. */
  readonly group: Sql;
  /** Array of all groups. */
  readonly groups: Sql;
}

function groupingOf(groupBy: GroupKey): Grouping {
  if (groupBy === 'tag') return { group: sql('arrayJoin(arrayDistinct(tags))'), groups: sql('arrayDistinct(tags)') };
  const key = metadataKeyOf(groupBy);
  const group =
    key === undefined ? sql(groupBy) : sql('if(mapContains(metadata, ?), metadata[?], NULL)', string(key), string(key));
  return { group, groups: sql(`[${group.sql}]`, ...group.params) };
}

interface FeedbackRow extends FeedbackSums {
  readonly key: string;
  readonly groups: readonly string[];
}

interface GroupsFound {
  /** The largest groups. `CountRow.grp` is the index of the group + 1. */
  readonly names: readonly string[];
  readonly rows: readonly CountRow[];
  readonly feedback: readonly FeedbackRow[];
}

/** Counts the runs of the largest groups, and the feedback on all runs. */
async function groupsIn(
  db: ClickHouse,
  tenant: string,
  conditions: Sql,
  time: TimeBuckets,
  { group, groups }: Grouping,
  { groups: groupsMax = GROUPS, series = 0 }: Ranged<StatisticsQuery>,
): Promise<GroupsFound> {
  const largest = await db.rows<{ group_name: string }>(
    sql(
      `SELECT ${group.sql} AS group_name FROM runs FINAL WHERE ${conditions.sql} GROUP BY group_name
        HAVING group_name IS NOT NULL ORDER BY count() DESC, group_name LIMIT ?`,
      ...group.params,
      ...conditions.params,
      integer(groupsMax),
    ),
  );
  const names = largest.map(({ group_name }) => group_name);
  // A linear search for the name takes five times as long.
  const index = sql(
    `transform(${group.sql}, ?, arrayEnumerate(?), 0)`,
    ...group.params,
    strings(names),
    strings(names),
  );
  const [rows, feedback] = await Promise.all([
    names.length === 0 ? [] : countsIn(db, conditions, time, index, series > 0),
    feedbackIn(db, tenant, conditions, groups, names),
  ]);
  return { names, rows, feedback };
}

/** Runs of the same group, time bucket and kind. */
type CountRow = Required<Usage> & {
  /** Index of the group + 1. */
  readonly grp: number;
  readonly bucket: number;
  readonly kind: number;
  readonly runs: number;
  readonly latency_buckets: readonly number[];
  readonly latency_runs: readonly number[];
};

/**
 * Counts runs. `grp` is the index of the group + 1, and not positive for runs to skip. All parts of the key are combined
 * in one number of 32 bits, which ClickHouse groups twice as fast as separate columns.
 */
async function countsIn(
  db: ClickHouse,
  conditions: Sql,
  { fromUs, toUs, stepUs }: TimeBuckets,
  grp: Sql,
  hasBuckets: boolean,
): Promise<CountRow[]> {
  const firstUs = Math.floor(fromUs / stepUs) * stepUs;
  const buckets = hasBuckets ? Math.floor((toUs - firstUs) / stepUs) + 1 : 1;
  const bucket = hasBuckets ? sql('intDiv(start_us - ?, ?)', integer(firstUs), integer(stepUs)) : sql('0');
  // An alias with the name of a column would replace the column in the conditions.
  const selected = joined([named(grp, 'group_index'), named(bucket, 'bucket'), named(KIND, 'kind')], ', ');
  const sums = (from: string, to: string) => USAGE_KEYS.map((key) => `sum(${from}${key}) AS ${to}${key}`).join(', ');
  const rows = await db.rows<Omit<CountRow, 'grp' | 'bucket' | 'kind'> & { cell: number }>(
    sql(
      `SELECT intDiv(code, ${LATENCY_VALUES}) AS cell, sum(number) AS runs, ${sums('added_', '')},
          groupArray(code % ${LATENCY_VALUES}) AS latency_buckets, groupArray(number) AS latency_runs
        FROM (
          SELECT toUInt32(((group_index * ${buckets} + bucket) * ${KINDS} + kind) * ${LATENCY_VALUES} + latency_bucket) AS code,
            count() AS number, ${sums('counted_', 'added_')}
          FROM (
            SELECT ${selected.sql}, latency_bucket, ${USAGE_KEYS.map((key) => `counted_${key}`).join(', ')}
            FROM runs FINAL WHERE ${conditions.sql}
          ) WHERE group_index > 0 GROUP BY code
        ) GROUP BY cell`,
      ...selected.params,
      ...conditions.params,
    ),
  );
  return rows.map(({ cell, ...row }) => {
    const at = Math.floor(cell / KINDS);
    return { ...row, grp: Math.floor(at / buckets), bucket: at % buckets, kind: cell % KINDS };
  });
}

function named({ sql: text, params }: Sql, name: string): Sql {
  return { sql: `${text} AS ${name}`, params };
}

function countedIn(row: CountRow, time: TimeBuckets): Counted {
  const { bucket, kind, runs } = row;
  const status = STATUSES[kind % ROOT] ?? 'success';
  const [runType = ''] = (kind & MODEL_CALL) === 0 ? [] : MODEL_TYPES;
  const isRoot = (kind & ROOT) !== 0;
  return countedOf(time.startUsOf(bucket), runs, { status, runType, isRoot }, usageSumsOf(row), latenciesIn(row));
}

function latenciesIn({ latency_buckets, latency_runs }: CountRow): Latencies {
  const counts = latency_buckets.map((bucket, at) => [bucket - 1, latency_runs[at] ?? 0] as const);
  return latenciesOfCounts(counts.filter(([bucket]) => bucket >= 0));
}

/** Adds up the feedback on the runs by key and by the groups of the run. Groups that are not among `names` are left out. */
async function feedbackIn(
  db: ClickHouse,
  tenant: string,
  conditions: Sql,
  groups: Sql,
  names: readonly string[],
): Promise<FeedbackRow[]> {
  return await db.rows<FeedbackRow>(
    sql(
      `SELECT key, groups, count() AS count, count(score) AS scores, sum(ifNull(score, 0)) AS sum
        FROM (SELECT run, key, score FROM feedback FINAL WHERE tenant = ?) AS feedback
        JOIN (
          SELECT id, arrayFilter(name -> has(?, name), ${groups.sql}) AS groups FROM runs FINAL
          WHERE ${conditions.sql} AND id IN (SELECT run FROM feedback WHERE tenant = ?)
        ) AS found ON found.id = feedback.run
        GROUP BY key, groups`,
      string(tenant),
      strings(names),
      ...groups.params,
      ...conditions.params,
      string(tenant),
    ),
  );
}
