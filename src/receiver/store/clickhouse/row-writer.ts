import { AssembledTrace } from '../../domain/assemble.ts';
import { grouped } from '../../domain/grouped.ts';
import { inTurns } from '../../domain/in-turns.ts';
import type { PriceList } from '../../domain/prices.ts';
import { type ClickHouseChanges, PROJECT_NAMES } from './changes.ts';
import { type ClickHouse, integers, sql, strings, uuids } from './connection.ts';
import type { ClickHouseDeletions } from './deletion.ts';
import { GROUP_MESSAGES_MAX, type Group, readFirstRun, readGroups, type StoredGroup } from './groups.ts';
import { type DerivedRow, projectNamesIn, rowsOf } from './run-row.ts';

/** Maximum number of rows per insert. */
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

  /** Derives the groups of a step (see `stepsOf`). If `isRepeated`, also inserts the rows that are stored. */
  async write(step: readonly StoredGroup[], isRepeated = false): Promise<void> {
    let rows: DerivedRow[] = [];
    const covered: Group[] = [];
    const { nowUs: deletedUs } = this.#deletions;
    for await (const found of this.#groupsOf(step)) {
      let group = found;
      if (this.#deletions.covers(found)) {
        covered.push(found);
        const trace = new AssembledTrace(found.trace.id, [], this.#prices);
        group = { ...found, trace, seenUs: Math.max(found.seenUs, deletedUs) };
      }
      for await (const row of inTurns(rowsOf(group))) {
        if (rows.length === INSERTED_ROWS) {
          // The sweep takes a group for derived once a row has its time, so only the last rows of a group may have it.
          const isOpen = (one: DerivedRow): boolean => one.tenant === group.tenant && one.group_id === group.group_id;
          await this.#deletions.delete(covered.splice(0), deletedUs);
          const early = rows.map((one) => (isOpen(one) ? { ...one, seen_us: one.seen_us - 1 } : one));
          await this.#insert(early, isRepeated);
          rows = [];
        }
        rows.push(row);
      }
    }
    // The rows come last, because the sweep treats a group with rows as derived.
    await this.#deletions.delete(covered, deletedUs);
    await this.#insert(rows, isRepeated);
  }

  async *#groupsOf(step: readonly StoredGroup[]) {
    const [first] = step;
    if (first === undefined || first.messages <= GROUP_MESSAGES_MAX) yield* readGroups(this.#db, step, this.#prices);
    else yield await readFirstRun(this.#db, first, this.#prices);
  }

  async #insert(derived: readonly DerivedRow[], isRepeated: boolean): Promise<void> {
    if (derived.length === 0) return;
    const stored = await this.#storedRows(derived);
    const rows = isRepeated ? derived : derived.filter((row) => isNew(row, stored.get(rowKeyOf(row))));
    const visible = rows.filter(({ is_deleted }) => is_deleted === 0);
    const changed = visible.map((row) => ({ ...row, projects: projectNamesIn(row) }));
    await this.#changes.report(changed, (derived_us) => {
      const inserted = rows.map(({ latestUs: _, version, columns, ...row }) => {
        return { ...row, ...columns, version: `${version}`, derived_us };
      });
      return this.#db.insert('runs', inserted);
    });
    await this.#reportLeftTraces(visible, stored);
  }

  /** Reports the traces and projects that runs have left. */
  async #reportLeftTraces(rows: readonly DerivedRow[], stored: ReadonlyMap<string, StoredRow>): Promise<void> {
    const moved = rows.flatMap((row) => {
      const { isDeleted, latestTrace: id = row.trace, projects: before = [] } = stored.get(rowKeyOf(row)) ?? {};
      const names = projectNamesIn(row);
      const projects = id === row.trace ? before.filter((name) => !names.includes(name)) : before;
      return isDeleted !== 0 || projects.length === 0 ? [] : [{ tenant: row.tenant, id, projects }];
    });
    for (const [tenant, traces] of grouped(moved, (one) => one.tenant)) await this.#changes.add(tenant, traces);
  }

  /** Returns the latest stored version of each row, by key. */
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
