import { createHash } from 'node:crypto';
import { MODEL_TYPES } from '../../../run/calls/same-call.ts';
import { comparable } from '../../domain/comparable.ts';
import type { PriceList } from '../../domain/cost/prices.ts';
import { grouped } from '../../domain/grouped.ts';
import { inTurns } from '../../domain/in-turns.ts';
import { comparedError, metadataTextOf, projectOf } from '../../domain/run-values.ts';
import type { TraceOutcome, Usage } from '../../domain/run-view.ts';
import { LATENCY_BUCKETS, latencyBucketOf } from '../../domain/statistics/latencies.ts';
import { countedAs, ROOT_KINDS, type RunKind } from '../../domain/statistics/statistics.ts';
import { toolsIn, USAGE_KEYS } from '../../domain/summary.ts';
import { AssembledTrace, type TracedRun, type TraceFigures } from '../../domain/trace/assemble.ts';
import { ordersOf } from '../../domain/trace/tree.ts';
import { type ClickHouseChanges, PROJECT_NAMES } from './changes.ts';
import { type ClickHouse, type InsertRow, integers, sql, strings, uuids } from './connection.ts';
import type { ClickHouseDeletions } from './deletion.ts';
import { GROUP_MESSAGES_MAX, type Group, readFirstRun, readGroups, type StoredGroup } from './groups.ts';
import { dayOfMs } from './messages.ts';

/** The kinds of runs that are no model calls. A run's kind is stored as its index, plus their number for model calls. */
const STATES: readonly Omit<RunKind, 'isModelCall'>[] = [undefined, ...ROOT_KINDS].flatMap((root) =>
  [
    { isError: false, isPending: false, root },
    { isError: true, isPending: false, root },
    { isError: false, isPending: true, root },
  ].filter(({ isError, isPending }) => {
    if (root === 'other') return !isError;
    return root === 'error' ? isError : root !== 'failed_below' || !(isError || isPending);
  }),
);
export const KINDS: number = 2 * STATES.length;
/** Number of latency codes. A pending run has the code 0. Other runs have their latency bucket plus 1. */
export const LATENCIES: number = LATENCY_BUCKETS + 1;
/** Number of possible values of the column `figures_code`. */
export const FIGURES_CODES: number = KINDS * LATENCIES;

/** Encodes a run's kind and latency as one number, so that statistics group runs by one column instead of four. */
function figuresCode({ summary, latencyUs, isRepeat }: TracedRun, outcome: TraceOutcome | undefined): number {
  const { isModelCall, ...kind } = countedAs(summary.status, summary.run_type, outcome, isRepeat);
  const state = STATES.findIndex(
    ({ isError, isPending, root }) => isError === kind.isError && isPending === kind.isPending && root === kind.root,
  );
  const code = state + (isModelCall ? STATES.length : 0);
  return code * LATENCIES + (latencyUs === undefined ? 0 : latencyBucketOf(latencyUs) + 1);
}

export function runKindOf(code: number): RunKind {
  const state = STATES[code % STATES.length] as (typeof STATES)[number];
  return { ...state, isModelCall: code >= STATES.length };
}

export const ERROR_KINDS: readonly number[] = [...Array(KINDS).keys()].filter((code) => runKindOf(code).isError);

interface DerivedRow {
  readonly tenant: string;
  readonly day: string;
  readonly start_us: number;
  readonly id: string;
  readonly group_id: string;
  readonly trace: string;
  readonly version: bigint;
  readonly seen_us: number;
  readonly is_deleted: 0 | 1;
  readonly is_root: 0 | 1;
  /** Fingerprint of the other columns. */
  readonly hash: string;
  readonly latestUs: number;
  readonly columns: InsertRow;
}

function projectNamesIn({ columns: { project, session_id } }: DerivedRow): string[] {
  return [project, session_id].filter((name) => typeof name === 'string');
}

/**
 * Yields the rows of the table `runs` for a group, that of the root last. The start time is part of the sort key, so a
 * run whose start time has changed also gets a row that deletes its previous row.
 */
function* rowsOf(group: Group): Generator<DerivedRow> {
  const { tenant, trace, merged, seenUs, version, isPart = false } = group;
  const shownUs = new Map(trace.runs.map(({ id, startUs }) => [id, startUs] as const));
  const rowOf = (
    id: string,
    startUs: number,
    row: Pick<DerivedRow, 'trace' | 'is_deleted' | 'is_root' | 'columns'>,
  ) => ({
    ...{ tenant, day: dayOfMs(startUs / 1_000), start_us: startUs, id, version, seen_us: seenUs },
    group_id: merged.get(id)?.group_id ?? group.group_id,
    ...{ latestUs: merged.get(id)?.latestUs ?? 0, hash: hashOf(row) },
    ...row,
  });
  for (const [id, { startsUs }] of merged) {
    for (const startUs of startsUs) {
      if (startUs !== shownUs.get(id)) yield rowOf(id, startUs, { trace: id, is_deleted: 1, is_root: 0, columns: {} });
    }
  }
  const orders = storedOrders(trace.runs);
  const nested = trace.runs.filter((run) => run !== trace.root);
  for (const run of trace.root === undefined ? nested : [...nested, trace.root]) {
    const columns = { ...columnsOf(trace, run, isPart), dotted_order: orders.get(run.id) ?? '' };
    yield rowOf(run.id, run.startUs, {
      trace: trace.shownId,
      is_deleted: 0,
      is_root: run === trace.root ? 1 : 0,
      columns,
    });
  }
}

/**
 * Returns the `dotted_order` of the runs in a trace. Omits those whose messages contain one that follows from the parents
 * and the start times, because queries derive it.
 */
function storedOrders(runs: readonly TracedRun[]): Map<string, string> {
  const derived = ordersOf(runs.map(({ id, parentId, startUs }) => ({ id, parentId, startUs, order: undefined })));
  const orders = ordersOf(runs);
  return new Map(
    runs.flatMap(({ id, order: own }) => {
      const order = orders.get(id) ?? '';
      return own !== undefined && order === derived.get(id) ? [] : [[id, order] as const];
    }),
  );
}

function hashOf(row: object): string {
  return BigInt(`0x${createHash('md5').update(JSON.stringify(row)).digest('hex').slice(0, 16)}`).toString();
}

function columnsOf(trace: AssembledTrace, traced: TracedRun, isPart: boolean): InsertRow {
  const { run, summary, costSource, latencyUs, metadata = {}, error } = traced;
  const { all, own } = traced === trace.root ? trace : {};
  const { id: _id, trace_id: _trace, inputs_preview, outputs_preview, ...listed } = summary;
  // The usage of a run that is no call does not count beside that of its calls, which are not read.
  const isCounted = !isPart || MODEL_TYPES.includes(summary.run_type);
  const texts = Object.keys(metadata).map((key) => [comparable(key), metadataTextOf(metadata, key) ?? '']);
  return {
    n: run.n,
    latency_us: latencyUs ?? null,
    ...traceColumns('', traced, all),
    ...(own !== all && { is_shared: 1, ...traceColumns('own_', traced, own) }),
    internal: summary.internal === true ? 1 : 0,
    project: projectOf(summary),
    session_id: summary.session_id ?? null,
    name: summary.name,
    run_type: summary.run_type,
    status: summary.status,
    model: summary.model ?? null,
    thread: summary.thread ?? null,
    user: summary.user ?? null,
    tags: summary.tags ?? [],
    metadata: Object.fromEntries(texts),
    error: comparedError(error) ?? '',
    ...usageColumns('', summary.usage, null),
    ...usageColumns('counted_', isCounted ? trace.countedUsage(traced) : undefined, 0),
    summary: JSON.stringify({ ...listed, tools: toolsIn(summary, run.facts) }),
    previews: JSON.stringify({ inputs_preview, outputs_preview }),
    cost_source: JSON.stringify(costSource),
  };
}

/** The columns that say what the trace of a root says as a whole. */
function traceColumns(prefix: string, traced: TracedRun, figures: TraceFigures | undefined): InsertRow {
  const totals = figures?.totals();
  const { feedback: _, ...trace } = totals ?? {};
  return {
    [`${prefix}figures_code`]: figuresCode(traced, figures?.outcome),
    [`${prefix}outcome`]: figures?.outcome ?? null,
    [`${prefix}totals`]: figures === undefined ? '' : JSON.stringify({ ...figures.fields, trace }),
    ...usageColumns(`${prefix}trace_`, totals?.usage, null),
  };
}

function usageColumns(prefix: string, usage: Usage | undefined, missing: 0 | null): InsertRow {
  return Object.fromEntries(USAGE_KEYS.map((key) => [prefix + key, usage?.[key] ?? missing]));
}

const INSERTED_ROWS = 5_000;

/** Derives the rows of groups, and inserts those that have changed. */
export class RowWriter {
  readonly #db: ClickHouse;
  readonly #prices: PriceList;
  readonly #changes: ClickHouseChanges;
  readonly #deletions: ClickHouseDeletions;

  constructor(db: ClickHouse, prices: PriceList, changes: ClickHouseChanges, deletions: ClickHouseDeletions) {
    this.#db = db;
    this.#prices = prices;
    this.#changes = changes;
    this.#deletions = deletions;
  }

  /** Derives the groups of a step, see `stepsOf`. */
  async write(step: readonly StoredGroup[]): Promise<void> {
    let rows: DerivedRow[] = [];
    const covered: Group[] = [];
    const { nowUs: deletedUs } = this.#deletions;
    for await (const found of this.#groupsOf(step)) {
      let group = found;
      if (this.#deletions.covers(found)) {
        covered.push(found);
        const trace = new AssembledTrace({ id: found.trace.id, isNamed: true }, [], this.#prices);
        group = { ...found, trace, seenUs: Math.max(found.seenUs, deletedUs) };
      }
      for await (const row of inTurns(rowsOf(group))) {
        if (rows.length === INSERTED_ROWS) {
          // The sweep skips a group if any of its rows has the group's time, so only the last rows of a group have it.
          const isOpen = (one: DerivedRow): boolean =>
            one.tenant === group.tenant && group.members.includes(one.group_id);
          await this.#deletions.delete(covered.splice(0), deletedUs);
          const early = rows.map((one) => (isOpen(one) ? { ...one, seen_us: one.seen_us - 1 } : one));
          await this.#insert(early);
          rows = [];
        }
        rows.push(row);
      }
    }
    // The rows come last, because the sweep treats a group with rows as derived.
    await this.#deletions.delete(covered, deletedUs);
    await this.#insert(rows);
  }

  async *#groupsOf(step: readonly StoredGroup[]) {
    const [first] = step;
    if (first === undefined || first.messages <= GROUP_MESSAGES_MAX) yield* readGroups(this.#db, step, this.#prices);
    else yield await readFirstRun(this.#db, first, this.#prices);
  }

  async #insert(derived: readonly DerivedRow[]): Promise<void> {
    if (derived.length === 0) return;
    const stored = await this.#storedRows(derived);
    const rows = derived.filter((row) => isNew(row, stored.get(rowKeyOf(row))));
    const visible = rows.filter(({ is_deleted }) => is_deleted === 0);
    // A listener may have received the id of a group as the id of the trace, before the trace had another one.
    const changed = visible.flatMap((row) =>
      [...new Set([row.trace, row.group_id])].map((trace) => ({ ...row, trace, projects: projectNamesIn(row) })),
    );
    await this.#changes.report(changed, (derived_us) => {
      const inserted = rows.map(({ latestUs: _, version, columns, ...row }) => ({
        ...row,
        ...columns,
        version: `${version}`,
        derived_us,
      }));
      return this.#db.insert('runs', inserted);
    });
    await this.#reportLeftTraces(visible, stored);
  }

  async #reportLeftTraces(rows: readonly DerivedRow[], stored: ReadonlyMap<string, StoredRow>): Promise<void> {
    const moved = rows.flatMap((row) => {
      const { isDeleted, latestTrace: id = row.trace, projects: before = [] } = stored.get(rowKeyOf(row)) ?? {};
      const names = projectNamesIn(row);
      const projects = id === row.trace ? before.filter((name) => !names.includes(name)) : before;
      return isDeleted !== 0 || projects.length === 0 ? [] : [{ tenant: row.tenant, id, projects }];
    });
    for (const [tenant, traces] of grouped(moved, (one) => one.tenant)) await this.#changes.add(tenant, traces);
  }

  async #storedRows(rows: readonly DerivedRow[]): Promise<ReadonlyMap<string, StoredRow>> {
    const tenants = strings(rows.map(({ tenant }) => tenant));
    const starts = integers(rows.map(({ start_us }) => start_us));
    const ids = uuids(rows.map(({ id }) => id));
    const stored = await this.#db.rows<StoredRow & RowKey>(
      sql`SELECT tenant, start_us, id,
          argMax((toString(version), toString(hash), seen_us, is_deleted, trace, ${PROJECT_NAMES}), version) AS latest,
          latest.1 AS latestVersion, latest.2 AS latestHash, latest.3 AS seenUs, latest.4 AS isDeleted,
          latest.5 AS latestTrace, latest.6 AS projects FROM runs
        WHERE (tenant, start_us, id) IN (SELECT arrayJoin(arrayZip(${tenants}, ${starts}, ${ids})))
        GROUP BY tenant, start_us, id`,
    );
    return new Map(stored.map((row) => [rowKeyOf(row), row]));
  }
}

type RowKey = Pick<DerivedRow, 'tenant' | 'start_us' | 'id'>;

interface StoredRow {
  readonly latestVersion: string;
  readonly latestHash: string;
  readonly seenUs: number;
  readonly isDeleted: number;
  readonly latestTrace: string;
  readonly projects: readonly string[];
}

function rowKeyOf({ tenant, start_us, id }: RowKey): string {
  return `${start_us} ${id} ${tenant}`;
}

/**
 * Returns whether a row must be inserted. The row of a run with new messages is inserted even if it is equal, because a
 * receiver that derives an earlier state may insert a different row at the same time.
 */
function isNew({ version, is_deleted, is_root, hash, latestUs }: DerivedRow, stored: StoredRow | undefined): boolean {
  if (stored === undefined) return true;
  if (BigInt(stored.latestVersion) >= version) return false;
  if (is_deleted === 1 || stored.isDeleted === 1) return is_deleted !== stored.isDeleted;
  return is_root === 1 || hash !== stored.latestHash || latestUs > stored.seenUs;
}
