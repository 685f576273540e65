import { randomUUID } from 'node:crypto';
import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { clearTimer, delay, setTimer } from '../../../platform/timers.ts';
import { grouped } from '../../domain/grouped.ts';
import type { PriceList } from '../../domain/prices.ts';
import { StoreError } from '../store.ts';
import type { ClickHouseChanges } from './changes.ts';
import type { StoreClock } from './clock.ts';
import {
  type ClickHouse,
  inParts,
  integer,
  integers,
  isTooLarge,
  RefusedError,
  sql,
  string,
  strings,
  uuids,
} from './connection.ts';
import { type Group, type GroupKey, keyOf, readGroups } from './groups.ts';
import { type DerivedRow, rowsOf } from './run-row.ts';

/** Maximum number of groups that are derived at the same time. */
const GROUPS_MAX = 1_000;
/** Minimum time between two derivations of the same group, in milliseconds. Every run in the group adds 1 ms. */
const PAUSE_MS = 500;
/** Minimum time between two derivations, in milliseconds. */
const INTERVAL_MS = 800;
/** Interval between sweeps, in milliseconds. */
const SWEEP_MS = 2_000;
/** Time during which only the receiver that stored a message derives it, in microseconds. */
const OTHERS_US = 10_000_000;
/** Allowance for slow inserts, in microseconds. */
const OVERLAP_US = 30_000_000;
const RETRY_MS = 1_000;
/** Maximum time range of one sweep query, in microseconds. */
const SWEPT_US_MAX = 3_600_000_000;
/** How far the sweep goes back if its position is unknown, in microseconds. */
const LOOK_BACK_US = 86_400_000_000;
/** Interval at which the position of the sweep is stored, in microseconds. */
const STORED_US = 60_000_000;
/** Age of the oldest change that lists do not show, from which on the store accepts no runs, in microseconds. */
const BEHIND_US = 60_000_000;

interface Due extends GroupKey {
  readonly dueMs: number;
  readonly addedMs: number;
}

/**
 * Derives the rows of the table `runs` from the table `messages`. The same messages always produce the same rows, so
 * several receivers can derive the same group.
 *
 * A receiver derives the groups whose messages it has stored. A group that is not derived within 10 s is left to the sweep,
 * in which each receiver asks for groups with outdated rows, in an order of its own, until there are none.
 */
export class Derivation {
  readonly #db: ClickHouse;
  readonly #prices: PriceList;
  readonly #changes: ClickHouseChanges;
  readonly #clock: StoreClock;
  readonly #due = new Map<string, Due>();
  /** Earliest time at which each group may be derived again, in milliseconds, by key. */
  readonly #pausedUntilMs = new Map<string, number>();
  /** Until when all messages are derived. Undefined until the position of earlier sweeps has been read. */
  #sweptUs: number | undefined;
  #storedUs = 0;
  /** End of the range that the sweep has begun, and the position of the last group that it has derived in this range. */
  #range: SweptRange | undefined;
  readonly #id: string = randomUUID();
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  /** When the last work ended, in milliseconds. */
  #endedMs = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #isClosed = false;

  constructor(db: ClickHouse, prices: PriceList, changes: ClickHouseChanges, clock: StoreClock) {
    this.#db = db;
    this.#prices = prices;
    this.#changes = changes;
    this.#clock = clock;
  }

  /** Number of groups with outdated rows. */
  get waiting(): number {
    return this.#due.size;
  }

  /** Whether lists lack changes that are older than a minute although derivation works. */
  get isBehind(): boolean {
    return !this.#hasFailed && this.#sweptUs !== undefined && this.#clock.nowUs() - this.#sweptUs > BEHIND_US;
  }

  /** Schedules the derivation of groups. */
  add(groups: readonly GroupKey[]): void {
    const addedMs = performance.now();
    for (const { tenant, group_id } of groups) {
      const key = keyOf({ tenant, group_id });
      if (!this.#due.has(key))
        this.#due.set(key, { tenant, group_id, addedMs, dueMs: this.#pausedUntilMs.get(key) ?? 0 });
    }
    this.#schedule(this.#endedMs + INTERVAL_MS - performance.now());
  }

  /** Starts the sweep. */
  start(): void {
    this.#schedule(SWEEP_MS);
  }

  /** Derives groups until none is left, without pausing between derivations of the same group. */
  async settle(): Promise<void> {
    do {
      while (this.#work !== undefined) await this.#work;
      while (this.#due.size > 0) await this.#deriveSome(Number.POSITIVE_INFINITY);
    } while (this.#work !== undefined || this.#due.size > 0);
  }

  /** Stops the sweep and derives the scheduled groups. If ClickHouse fails, another receiver derives them later. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimer(this.#timer);
    await this.#work;
    try {
      while (await this.#deriveSome(Number.POSITIVE_INFINITY)) {}
    } catch (error) {
      diagnostics.warn(`the store in ClickHouse could not update its lists before it closed: ${messageOf(error)}`);
    }
  }

  /** Derives groups now. Calls `skip` with a group that cannot be derived, or rejects if there is no `skip`. */
  async derive(groups: readonly GroupKey[], skip?: (group: GroupKey, error: unknown) => Promise<void>): Promise<void> {
    if (groups.length === 0) return;
    const derivePart = async (part: readonly GroupKey[]): Promise<void> =>
      this.#insertRows(await readGroups(this.#db, part, this.#prices));
    for await (const _ of inParts(groups, derivePart, skip, skip && isOfGroup)) {
    }
  }

  readonly #skip = async ({ group_id }: GroupKey, error: unknown): Promise<void> => {
    // If ClickHouse refuses this write too, the group is not the cause.
    if (!isTooLarge(error)) await this.#changes.testWrite();
    const reason = isTooLarge(error) ? 'it is too large to read' : `they cannot be derived: ${messageOf(error)}`;
    diagnostics.warn(`lists do not show the changes of trace ${group_id}, because ${reason}`);
  };

  #schedule(delayMs: number): void {
    if (this.#isClosed || this.#work !== undefined) return;
    clearTimer(this.#timer);
    this.#timer = setTimer(
      () => {
        this.#work = this.#run().finally(() => {
          this.#work = undefined;
          this.#endedMs = performance.now();
          this.#schedule(this.#due.size > 0 ? INTERVAL_MS : SWEEP_MS);
        });
      },
      Math.max(0, delayMs),
    );
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    try {
      await this.#deriveDue();
      await this.#sweep();
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed && !this.#isClosed) {
        diagnostics.warn(`the store in ClickHouse could not update its lists and retries: ${messageOf(error)}`);
      }
      this.#hasFailed = true;
      await delay(RETRY_MS, undefined);
    }
  }

  /** Derives the groups whose rows are outdated, except those of the last 10 s, for up to `SWEEP_MS`. */
  async #sweep(): Promise<void> {
    await this.#clock.synchronize();
    const endMs = performance.now() + SWEEP_MS;
    const untilUs = this.#clock.nowUs() - OTHERS_US;
    this.#sweptUs ??= await this.#earlierPositionUs();
    if (untilUs - this.#sweptUs < SWEEP_MS * 1_000) return;
    while (!this.#isClosed && this.#sweptUs < untilUs && performance.now() < endMs) {
      // The end stays the same until the range is finished: later groups may come before the position.
      const range: SweptRange = this.#range ?? {
        untilUs: Math.min(untilUs, this.#sweptUs + SWEPT_US_MAX),
        position: -1,
      };
      const found = await this.#underivedGroups(this.#sweptUs - OVERLAP_US, range);
      await this.derive(found, this.#skip);
      const last = found[GROUPS_MAX - 1] && found.at(-1);
      this.#range = last && { ...range, position: last.position };
      if (last === undefined) this.#sweptUs = range.untilUs;
    }
    if (this.#sweptUs - this.#storedUs < STORED_US) return;
    this.#storedUs = this.#sweptUs;
    await this.#db.insert('times', [{ name: 'swept', us: this.#storedUs }]);
  }

  /**
   * Returns the position of the last sweep of any receiver, or the time of the first message. If the clock of
   * ClickHouse was ahead, so that the position is in the future, returns the time one day ago.
   */
  async #earlierPositionUs(): Promise<number> {
    const nowUs = this.#clock.nowUs();
    const sweptUs = await latestTimeUs(this.#db, 'swept');
    if (sweptUs > nowUs) return nowUs - LOOK_BACK_US;
    if (sweptUs > 0) return sweptUs;
    const [row] = await this.#db.rows<{ us: number }>(sql('SELECT min(received_us) AS us FROM messages'));
    return row?.us || nowUs - OTHERS_US;
  }

  /** Derives the groups that are due, for up to `SWEEP_MS`. */
  async #deriveDue(): Promise<void> {
    const endMs = performance.now() + SWEEP_MS;
    while (!this.#isClosed && performance.now() < endMs && (await this.#deriveSome(performance.now()))) {}
  }

  /** Derives groups that are due. Returns false if no group was due. */
  async #deriveSome(nowMs: number): Promise<boolean> {
    const due = this.#nextGroups(nowMs);
    for (const group of due) this.#due.delete(keyOf(group));
    try {
      await this.derive(due, this.#skip);
    } catch (error) {
      const dueMs = nowMs === Number.POSITIVE_INFINITY ? 0 : nowMs + RETRY_MS;
      for (const group of due) this.#due.set(keyOf(group), { ...group, dueMs });
      throw error;
    }
    return due.length > 0;
  }

  /** Returns up to `GROUPS_MAX` due groups. Leaves those that have waited for too long to the sweep, unless it fails. */
  #nextGroups(nowMs: number): Due[] {
    const groups: Due[] = [];
    for (const [key, due] of this.#due) {
      if (due.dueMs > nowMs) continue;
      const isLate = nowMs - Math.max(due.addedMs, due.dueMs) > OTHERS_US / 1_000;
      if (isLate && nowMs !== Number.POSITIVE_INFINITY && !this.#hasFailed) this.#due.delete(key);
      else if (groups.push(due) === GROUPS_MAX) break;
    }
    return groups;
  }

  async #insertRows(groups: readonly Group[]): Promise<void> {
    const derived = groups.flatMap(rowsOf);
    const stored = await this.#storedRows(derived);
    const rows = derived.filter((row) => isNew(row, stored.get(rowKeyOf(row))));
    const visible = rows.filter(({ is_deleted }) => is_deleted === 0);
    // The insert adds them to the table `changes` too.
    await this.#changes.report(visible, (changedUs) =>
      this.#db.insert(
        'runs',
        rows.map(({ latestUs: _, version, columns, ...row }) => ({
          ...row,
          ...columns,
          version: `${version}`,
          derived_us: changedUs,
        })),
      ),
    );
    await this.#reportLeftTraces(visible, stored);
    const nowMs = performance.now();
    for (const [key, untilMs] of this.#pausedUntilMs) if (untilMs <= nowMs) this.#pausedUntilMs.delete(key);
    for (const { tenant, group_ids, runs } of groups) {
      for (const group_id of group_ids)
        this.#pausedUntilMs.set(keyOf({ tenant, group_id }), nowMs + PAUSE_MS + runs.size);
    }
  }

  /** Reports the traces that runs have left as changed. */
  async #reportLeftTraces(rows: readonly DerivedRow[], stored: ReadonlyMap<string, StoredRow>): Promise<void> {
    const moved = rows.flatMap((row) => {
      const { isDeleted, latestTrace: trace } = stored.get(rowKeyOf(row)) ?? {};
      return isDeleted !== 0 || trace === undefined || trace === row.trace ? [] : [{ tenant: row.tenant, trace }];
    });
    for (const [tenant, own] of grouped(moved, (one) => one.tenant)) {
      await this.#changes.add(
        tenant,
        own.map(({ trace }) => trace),
      );
    }
  }

  /** Returns the latest stored version of each row, by key. */
  async #storedRows(rows: readonly DerivedRow[]): Promise<ReadonlyMap<string, StoredRow>> {
    const stored = await this.#db.rows<StoredRow & RowKey>(
      sql(
        `SELECT tenant, start_us, id,
            argMax((toString(version), toString(hash), seen_us, is_deleted, trace), version) AS latest,
            latest.1 AS latestVersion, latest.2 AS latestHash, latest.3 AS seenUs, latest.4 AS isDeleted,
            latest.5 AS latestTrace FROM runs
          WHERE (tenant, start_us, id) IN (SELECT arrayJoin(arrayZip(?, ?, ?))) GROUP BY tenant, start_us, id`,
        strings(rows.map(({ tenant }) => tenant)),
        integers(rows.map(({ start_us }) => start_us)),
        uuids(rows.map(({ id }) => id)),
      ),
    );
    return new Map(stored.map((row) => [rowKeyOf(row), row]));
  }

  /**
   * Returns up to `GROUPS_MAX` groups whose messages are newer than their rows in `runs`, by their position in an order that
   * is different for each receiver.
   */
  async #underivedGroups(
    sinceUs: number,
    { untilUs, position }: SweptRange,
  ): Promise<(GroupKey & { readonly position: number })[]> {
    return await this.#db.rows(
      sql(
        `SELECT tenant, group_id, cityHash64(tenant, group_id, ?) % 4294967296 AS position FROM (
            SELECT tenant, group_id, max(received_us) AS latest_us FROM messages WHERE received_us BETWEEN ? AND ?
            GROUP BY tenant, group_id) AS stored
          LEFT JOIN (SELECT tenant, arrayJoin(group_ids) AS group_id, max(seen_us) AS derived_us FROM runs
            WHERE seen_us >= ? GROUP BY tenant, group_id) AS derived USING (tenant, group_id)
          WHERE latest_us > derived_us AND position > ? ORDER BY position LIMIT ${GROUPS_MAX} WITH TIES`,
        string(this.#id),
        integer(sinceUs),
        integer(untilUs),
        integer(sinceUs),
        integer(position),
      ),
    );
  }
}

interface SweptRange {
  readonly untilUs: number;
  readonly position: number;
}

interface RowKey {
  readonly tenant: string;
  readonly start_us: number;
  readonly id: string;
}

interface StoredRow {
  readonly latestVersion: string;
  readonly latestHash: string;
  readonly seenUs: number;
  readonly isDeleted: number;
  readonly latestTrace: string;
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

/** Returns a time in the table `times` in microseconds, or 0 if it is not stored. */
export async function latestTimeUs(db: ClickHouse, name: 'swept' | 'retention' | 'age'): Promise<number> {
  const [row] = await db.rows<{ us: number }>(
    sql('SELECT max(times.us) AS us FROM times WHERE name = ?', string(name)),
  );
  return row?.us ?? 0;
}

/** Returns whether an error may concern only some groups, unlike a lost connection or an overload. */
function isOfGroup(error: unknown): boolean {
  return isTooLarge(error) || error instanceof RefusedError || !(error instanceof StoreError);
}
