import type { GroupKey, RankKey, TimeRange } from '../../../domain/query/query.ts';
import { metadataKeyOf } from '../../../domain/query/query-keys.ts';
import { type Latencies, latenciesOfCounts } from '../../../domain/statistics/latencies.ts';
import {
  countedOf,
  type FeedbackSums,
  GROUPS,
  StatisticsTally,
  type StoredSums,
  SUM_KEYS,
  sumsIn,
} from '../../../domain/statistics/statistics.ts';
import { type StartRange, type TimeBuckets, timeBucketsOf } from '../../../domain/statistics/time-buckets.ts';
import { USAGE_KEYS } from '../../../domain/summary.ts';
import { withinProject } from '../../../filter/run-filter.ts';
import { all } from '../../../filter/sql.ts';
import { type ClickHouse, integer, type Query, type Sql, sql, string, strings } from '../connection.ts';
import { ERROR_KINDS, FIGURES_CODES, KINDS, LATENCIES, runKindOf } from '../run-row.ts';
import { metadataValue, rowCondition, traceColumn } from './conditions.ts';
import { searchConditions } from './search.ts';

/** See `QueryStore.statistics`. ClickHouse counts runs by group, time bucket, kind and latency bucket. */
export const statistics: Query<'statistics'> = async (db, scope, query) => {
  const { tenant } = scope;
  const filter = withinProject(scope, query.filter);
  const search = await searchConditions(db, tenant, filter, 'runs');
  const starts = await startRangeOf(db, filter.range, all([rowCondition(tenant, filter), ...search]));
  const tally = new StatisticsTally(query, starts);
  const time = timeBucketsOf(query, starts);
  if (time === undefined) return tally.statistics();
  // Omits runs that arrived after the first query.
  const range = { fromUs: time.fromUs, beforeUs: Math.min(filter.range.beforeUs, time.toUs + 1) };
  const conditions = all([rowCondition(tenant, { ...filter, range }), ...search]);
  const { groupBy = 'name', groups = GROUPS, rankBy = 'runs', series = 0 } = query;
  const grouping = groupingOf(groupBy);
  const names = await largestGroups(db, conditions, grouping, sql(AMOUNTS[rankBy]), groups);
  const [rows, feedback] = await Promise.all([
    countsIn(db, conditions, time, grouping, names, series > 0, sql(traceColumn('figures_code', filter))),
    feedbackSums(db, tenant, conditions, grouping, names),
  ]);
  for (const row of rows) {
    const { bucket, kind, runs, group } = row;
    const counted = countedOf(time.starts[bucket] ?? 0, runs, runKindOf(kind), sumsIn(row), latenciesIn(row));
    if (group === 0) tally.add(counted);
    else tally.addToGroups(names.slice(group - 1, group), counted);
  }
  for (const { key, groups: found, ...sums } of feedback) tally.addFeedback(found, key, sums);
  return tally.statistics();
};

/** Returns the first and last start times of the runs, or undefined if the query's time range already has both ends. */
async function startRangeOf(db: ClickHouse, { fromUs, beforeUs }: TimeRange, conditions: Sql) {
  if (Number.isFinite(fromUs) && Number.isFinite(beforeUs)) return undefined;
  const [row] = await db.rows<StartRange & { runs: number }>(
    sql`SELECT count() AS runs, min(start_us) AS firstUs, max(start_us) AS lastUs FROM runs FINAL WHERE ${conditions}`,
  );
  return row === undefined || row.runs === 0 ? undefined : row;
}

interface Grouping {
  /** The group of a run. A run in several groups produces a row for each. */
  readonly group: Sql;
  readonly groups: Sql;
  readonly isTag: boolean;
}

function groupingOf(groupBy: GroupKey): Grouping {
  const isTag = groupBy === 'tag';
  if (isTag) return { group: sql('arrayJoin(arrayDistinct(tags))'), groups: sql('arrayDistinct(tags)'), isTag };
  const key = metadataKeyOf(groupBy);
  const column = groupBy === 'name' ? 'if(internal = 1 AND is_root = 0, NULL, name)' : groupBy;
  const group = key === undefined ? sql(column) : metadataValue(key);
  return { group, groups: sql`[${group}]`, isTag };
}

/** SQL expressions for the amounts by which groups are ranked. Costs are rounded, because their sums are not exact. */
const AMOUNTS: Readonly<Record<RankKey, string>> = {
  runs: 'count()',
  errors: `countIf(has([${ERROR_KINDS}], intDiv(figures_code, ${LATENCIES})))`,
  tokens: 'sum(counted_total_tokens)',
  cost: 'round(sum(counted_total_cost), 9)',
};

async function largestGroups(db: ClickHouse, conditions: Sql, { group }: Grouping, amount: Sql, limit: number) {
  const rows = await db.rows<{ group_name: string }>(
    sql`SELECT ${group} AS group_name FROM runs FINAL WHERE ${conditions} GROUP BY group_name
      HAVING group_name IS NOT NULL ORDER BY ${amount} DESC, count() DESC, group_name LIMIT ${integer(limit)}`,
  );
  return rows.map(({ group_name }) => group_name);
}

/** Returns an SQL expression for a group's position in `names`, starting at 1. All other groups have position 0. */
function groupIndex({ group, isTag }: Grouping, names: readonly string[]): Sql {
  if (names.length === 0) return sql('0');
  // `transform` is five times as fast as `indexOf`.
  const indexOf = (text: string) => `ifNull(transform(${text}, ?, arrayEnumerate(?), 0), 0)`;
  if (!isTag) return sql(indexOf(group.sql), ...group.params, strings(names), strings(names));
  // Position 0 is added to every run, so that it also counts in the totals.
  const indexes = `arrayMap(tag -> ${indexOf('tag')}, tags)`;
  return sql(`arrayJoin(arrayDistinct(arrayPushBack(${indexes}, 0)))`, strings(names), strings(names));
}

/** Figures of the runs with the same time bucket and kind, for one group or in total. */
type CountRow = StoredSums & {
  /** Position of the group in `names`, starting at 1, or 0 for the total of all groups. */
  readonly group: number;
  readonly bucket: number;
  readonly kind: number;
  readonly runs: number;
  readonly latency_buckets: readonly number[];
  readonly latency_runs: readonly number[];
};

/**
 * Counts all runs, and the runs of each group in `names`. The innermost query counts by group, and the query around it
 * adds the totals. The grouping key is a single 32-bit number, because ClickHouse groups by one number twice as fast as
 * by several columns.
 */
async function countsIn(
  db: ClickHouse,
  conditions: Sql,
  time: TimeBuckets,
  grouping: Grouping,
  names: readonly string[],
  hasSeries: boolean,
  code: Sql,
): Promise<CountRow[]> {
  const buckets = time.starts.length;
  const bucket = bucketIndex(time);
  const index = groupIndex(grouping, names);
  const sums = (from: string, to: string, keys: readonly string[] = SUM_KEYS) =>
    sql(keys.map((key) => `sum(${from}${key}) AS ${to}${key}`).join(', '));
  const codesOfGroup = buckets * FIGURES_CODES;
  const total = sql`run_code % ${codesOfGroup}`;
  const withoutBucket = sql`run_code - ${total} + run_code % ${FIGURES_CODES}`;
  const ofGroup = hasSeries ? sql('run_code') : withoutBucket;
  const codes = grouping.isTag ? ofGroup : sql`${total}, ${ofGroup}`;
  const rows = await db.rows<Omit<CountRow, 'group' | 'bucket' | 'kind'> & { cell: number }>(
    sql`SELECT intDiv(code, ${LATENCIES}) AS cell, sum(number) AS runs, ${sums('added_', '')},
        groupArray(code % ${LATENCIES}) AS latency_buckets, groupArray(number) AS latency_runs
      FROM (
        SELECT arrayJoin(if(run_code < ${codesOfGroup}, [run_code], [${codes}])) AS code,
          sum(run_number) AS number, ${sums('run_', 'added_')}
        FROM (
          SELECT toUInt32((${index} * ${buckets} + ${bucket}) * ${FIGURES_CODES} + ${code}) AS run_code,
            count() AS run_number, ${sums('counted_', 'run_', USAGE_KEYS)},
            countIf(counted_total_tokens > 0 AND total_cost IS NULL) AS run_unpriced_calls
          FROM runs FINAL WHERE ${conditions} GROUP BY run_code
        ) GROUP BY code
      ) GROUP BY cell`,
  );
  return rows.map(({ cell, ...row }) => {
    const at = Math.floor(cell / KINDS);
    return { ...row, group: Math.floor(at / buckets), bucket: at % buckets, kind: cell % KINDS };
  });
}

function bucketIndex({ starts, stepUs }: TimeBuckets): Sql {
  const [firstUs = 0, secondUs = firstUs + stepUs] = starts;
  const last = starts.length - 1;
  const isRegular = starts.every((startUs, at) => at === 0 || startUs === secondUs + (at - 1) * stepUs);
  // The first bucket can be shorter, and a run can start at the end of the last bucket.
  if (isRegular) return sql(`least(intDiv(start_us - ?, ?), ${last})`, integer(secondUs - stepUs), integer(stepUs));
  return sql(`transform(roundDown(start_us, [${starts}]), [${starts}], range(${starts.length}), 0)`);
}

function latenciesIn({ latency_buckets, latency_runs }: CountRow): Latencies {
  const counts = latency_buckets.map((bucket, at) => [bucket - 1, latency_runs[at] ?? 0] as const);
  return latenciesOfCounts(counts.filter(([bucket]) => bucket >= 0));
}

interface FeedbackRow extends FeedbackSums {
  readonly key: string;
  readonly groups: readonly string[];
}

/** Sums the feedback on the runs by key and group. Omits groups that are not in `names`. */
async function feedbackSums(
  db: ClickHouse,
  tenant: string,
  conditions: Sql,
  { groups }: Grouping,
  names: readonly string[],
): Promise<FeedbackRow[]> {
  return await db.rows<FeedbackRow>(
    sql`SELECT key, groups, count() AS count, count(score) AS scores, sum(ifNull(score, 0)) AS sum
      FROM (SELECT run, key, score FROM feedback FINAL WHERE tenant = ${string(tenant)}) AS feedback
      JOIN (
        SELECT id, arrayFilter(name -> has(${strings(names)}, name), ${groups}) AS groups FROM runs FINAL
        PREWHERE id IN (SELECT run FROM feedback WHERE tenant = ${string(tenant)}) WHERE ${conditions}
      ) AS found ON found.id = feedback.run
      GROUP BY key, groups`,
  );
}
