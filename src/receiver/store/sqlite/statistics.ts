import type { GroupKey, Ranged, Statistics, StatisticsQuery, TimeRange } from '../../query/query.ts';
import type { RunFilter } from '../run-filter.ts';
import type { RunStatus } from '../run-view.ts';
import {
  latencyBucketOf,
  latencyPairs,
  type StartRange,
  StatisticsTally,
  timeBucketsOf,
  usageSumsOf,
} from '../statistics.ts';
import { all, type Condition } from './conditions.ts';
import { PERIODS, SUMS, type SumsRow, usageSumsIn } from './counters.ts';
import type { Row, SqliteConnection } from './database.ts';
import { COUNTS_USAGE, usageIn } from './run-row.ts';

const MINUTE_US = 60_000_000;
const LONGEST = PERIODS.at(-1) ?? 1;

/** A part of the time range: whole periods, which are read from the counters, or a time that is scanned. */
type Segment = Periods | { readonly range: TimeRange };

interface Periods {
  /** Minutes, as `from` and `before`. */
  readonly period: number;
  readonly from: number;
  readonly before: number;
}

/**
 * Computes statistics. The counters answer filters on project, name, type, model and status for whole minutes. Other
 * filters, and the parts of minutes at both ends of the range, are answered by a scan of the runs in the range.
 */
export function statisticsIn(
  connection: SqliteConnection,
  tenant: number,
  filter: RunFilter,
  query: Ranged<StatisticsQuery>,
  isProjectId: boolean,
  conditionsFor: (range: TimeRange) => Condition,
): Statistics {
  const isCounted = !isProjectId && hasCounters(filter);
  const counters = new CounterReader(connection, tenant, filter);
  const starts = isCounted
    ? counters.startRange(filter.range, conditionsFor)
    : startRangeOf(connection, conditionsFor(filter.range));
  const tally = new StatisticsTally(query, starts);
  if (starts === undefined) return tally.statistics();
  const time = timeBucketsOf(query, starts);
  const { fromUs, beforeUs } = filter.range;
  const range = {
    fromUs: Math.max(fromUs, starts.firstUs),
    beforeUs: Math.min(beforeUs, starts.lastUs + 1),
  };
  const segments = isCounted && time?.stepMinutes !== undefined ? segmentsOf(range, time.stepMinutes) : [];
  const { groupBy = 'name' } = query;
  for (const segment of segments.length > 0 ? segments : [{ range }]) {
    if ('range' in segment) scan(connection, conditionsFor(segment.range), groupBy, tally);
    else counters.add(segment, groupBy, tally);
  }
  return tally.statistics();
}

function hasCounters({ traceId, tags, metadata, latencyUs, tokens, search }: RunFilter): boolean {
  const isPlain = traceId === undefined && latencyUs === undefined && tokens === undefined && search === undefined;
  return isPlain && tags.length === 0 && metadata.length === 0;
}

/** Divides a range into as few periods as possible that do not cross the start of a bucket. */
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

/** `from` and `before` are minutes. The longest period comes first. */
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

/** Reads counters of a tenant that match a filter. */
class CounterReader {
  readonly #connection: SqliteConnection;
  readonly #condition: Condition;

  constructor(connection: SqliteConnection, tenant: number, { projects, name, runType, model, statuses }: RunFilter) {
    this.#connection = connection;
    const equal = (column: string, value: string | undefined): Condition[] =>
      value === undefined ? [] : [{ sql: `${column} = ?`, values: [value] }];
    this.#condition = all([
      { sql: 'tenant = ?', values: [tenant] },
      ...projects.flatMap((project) => equal('project', project)),
      ...equal('name', name),
      ...equal('run_type', runType),
      ...equal('model', model),
      ...(statuses === undefined
        ? []
        : [{ sql: `status IN (${statuses.map(() => '?').join(', ')})`, values: statuses }]),
    ]);
  }

  /** Finds the first and the last start in a range by the longest and the shortest periods that have counters. */
  startRange({ fromUs, beforeUs }: TimeRange, conditionsFor: (range: TimeRange) => Condition): StartRange | undefined {
    const from = Number.isFinite(fromUs) ? Math.floor(fromUs / MINUTE_US) : -Number.MAX_SAFE_INTEGER;
    const before = Number.isFinite(beforeUs) ? Math.ceil(beforeUs / MINUTE_US) : Number.MAX_SAFE_INTEGER;
    const at = (end: 'min' | 'max'): number | undefined => {
      const long = this.#start(end, LONGEST, from - LONGEST + 1, before);
      if (long === undefined) return undefined;
      // The first period may have runs only before the range, so later periods are searched, too.
      return end === 'min'
        ? this.#start(end, 1, Math.max(from, long), before)
        : this.#start(end, 1, from, Math.min(before, long + LONGEST));
    };
    const [first, last] = [at('min'), at('max')];
    if (first === undefined || last === undefined) return undefined;
    const minute = (start: number, end: number): TimeRange => ({
      fromUs: Math.max(fromUs, start * MINUTE_US),
      beforeUs: Math.min(beforeUs, end * MINUTE_US),
    });
    const firstStarts = startRangeOf(this.#connection, conditionsFor(minute(first, first + 1)));
    const lastStarts = startRangeOf(this.#connection, conditionsFor(minute(last, last + 1)));
    if (firstStarts !== undefined && lastStarts !== undefined) {
      return { firstUs: firstStarts.firstUs, lastUs: lastStarts.lastUs };
    }
    // A minute at an end of the range has runs only outside of the range.
    return startRangeOf(this.#connection, conditionsFor({ fromUs, beforeUs }));
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
      const group = grp === '' && groupBy === 'model' ? undefined : grp;
      tally.add({ startUs: start * MINUTE_US, group, status, runs, usage: usageSumsIn(row), latencies });
    }
  }

  #start(end: 'min' | 'max', period: number, from: number, before: number): number | undefined {
    const row = this.#connection.one<{ start: number }>(
      `SELECT start FROM counters WHERE period = ? AND start >= ? AND start < ? AND ${this.#condition.sql}
        ORDER BY start ${end === 'min' ? 'ASC' : 'DESC'} LIMIT 1`,
      period,
      from,
      before,
      ...this.#condition.values,
    );
    return row?.start;
  }
}

function startRangeOf(connection: SqliteConnection, { sql, values }: Condition): StartRange | undefined {
  const row = connection.one<{ first: number | null; last: number | null }>(
    `SELECT min(start_us) AS first, max(start_us) AS last FROM runs WHERE ${sql}`,
    ...values,
  );
  if (row === undefined || row.first === null || row.last === null) return undefined;
  return { firstUs: row.first, lastUs: row.last };
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
  const rows = connection.each<ScannedRow>(
    `SELECT start_us, end_us, status, ${groupBy} AS grp, ${COUNTS_USAGE} AS counts,
      input_tokens, output_tokens, total_tokens, total_cost FROM runs WHERE ${sql}`,
    ...values,
  );
  for (const row of rows) {
    const latencyUs = row.end_us === null ? undefined : Math.max(0, row.end_us - row.start_us);
    const usage = row.counts === 1 ? usageIn(row) : undefined;
    tally.add({
      startUs: row.start_us,
      group: row.grp ?? undefined,
      status: row.status,
      runs: 1,
      usage: usage && usageSumsOf(usage),
      latencies: latencyUs === undefined ? '' : latencyPairs(latencyBucketOf(latencyUs), 1),
    });
  }
}
