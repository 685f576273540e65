import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { clearTimer, setTimer } from '../../../base/timers.ts';
import type { Prices } from '../prices.ts';
import { type ClickHouse, integer, sql } from './connection.ts';
import { emptyGroup, type Group, readGroups } from './groups.ts';
import { type Move, moveRuns } from './moves.ts';
import type { PlaceFinder } from './places.ts';
import { rowsOf } from './run-row.ts';
import type { ChangedGroup } from './writer.ts';

/** Maximum number of groups to derive together. */
const GROUPS_MAX = 300;
/** Minimum time between two derivations of a group, in milliseconds. Larger groups wait 1 ms for each run. */
const PAUSE_MS = 500;
/** Interval at which runs that wait for other runs, and groups of stopped servers, are looked for. */
const SWEEP_MS = 2_000;
/** Time in which another server derives the groups whose messages it has stored, in microseconds. */
const OTHERS_US = 10_000_000;
/** Clocks of servers may differ, and inserts may take some time, in microseconds. */
const OVERLAP_US = 30_000_000;
const RETRY_MS = 1_000;
/** Time that a server looks back when it starts, in microseconds. */
const LOOK_BACK_US = 86_400_000_000;
/** Maximum number of groups that a sweep finds. The next sweep finds the others. */
const SWEPT_GROUPS_MAX = 10_000;

/** Maximum number of waiting runs that are moved together. */
const MOVES_MAX = 1_000;

interface WaitingRow {
  readonly tenant: string;
  readonly id: string;
  readonly waitsFor: string;
  readonly from: string;
  readonly to: string;
  readonly day: string;
}

interface Due extends ChangedGroup {
  readonly dueMs: number;
  /** Whether the group is derived without others, because it may be too large. */
  readonly isAlone?: boolean;
}

/**
 * Derives the rows of the table `runs` from the table `messages`. Deriving a group again gives the same rows, so that
 * several servers may derive the same group.
 */
export class Derivation {
  readonly #db: ClickHouse;
  readonly #places: PlaceFinder;
  readonly #prices: Prices;
  readonly #onChange: (tenant: string, traceIds: readonly string[]) => Promise<void>;
  readonly #nowUs: () => number;
  readonly #due = new Map<string, Due>();
  /** Time before which a group is not derived again, in milliseconds, by tenant and group. */
  readonly #pausedUntilMs = new Map<string, number>();
  #sweptUs: number;
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  #isClosed = false;

  constructor(
    db: ClickHouse,
    places: PlaceFinder,
    prices: Prices,
    nowUs: () => number,
    onChange: (tenant: string, traceIds: readonly string[]) => Promise<void>,
  ) {
    this.#db = db;
    this.#places = places;
    this.#prices = prices;
    this.#nowUs = nowUs;
    this.#onChange = onChange;
    this.#sweptUs = nowUs() - LOOK_BACK_US;
  }

  /** Number of groups that wait to be derived. */
  get waiting(): number {
    return this.#due.size;
  }

  /** Derives groups soon. */
  add(groups: readonly ChangedGroup[]): void {
    for (const { tenant, grp } of groups) {
      const key = tenant + grp;
      if (!this.#due.has(key)) this.#due.set(key, { tenant, grp, dueMs: this.#pausedUntilMs.get(key) ?? 0 });
    }
    this.#schedule(0);
  }

  /** Starts to look for waiting runs and for groups of stopped servers. */
  start(): void {
    this.#schedule(SWEEP_MS);
  }

  /** Derives all groups that are due, also those that pause. Moves waiting runs whose other runs have arrived. */
  async settle(): Promise<void> {
    do {
      while (this.#work !== undefined) await this.#work;
      while (this.#due.size > 0) await this.#deriveSome(Number.POSITIVE_INFINITY);
    } while (await this.#moveWaiting(0));
  }

  /** Derives the groups that are due, and stops. If ClickHouse fails, the next server that starts derives them. */
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

  /** Derives groups now. */
  async derive(tenant: string, grps: readonly string[]): Promise<void> {
    for (let at = 0; at < grps.length; at += GROUPS_MAX) {
      await this.#deriveGroups(tenant, grps.slice(at, at + GROUPS_MAX));
    }
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed || this.#work !== undefined) return;
    clearTimer(this.#timer);
    this.#timer = setTimer(() => {
      this.#work = this.#run().finally(() => {
        this.#work = undefined;
        this.#schedule(this.#due.size > 0 ? PAUSE_MS : SWEEP_MS);
      });
    }, delayMs);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isClosed && (await this.#deriveSome(performance.now()))) {}
      const nowUs = this.#nowUs();
      if (this.#isClosed || nowUs - this.#sweptUs < SWEEP_MS * 1_000) return;
      const sinceUs = this.#sweptUs - OVERLAP_US;
      await this.#moveWaiting(sinceUs);
      const found = await this.#underivedGroups(sinceUs);
      this.add(found);
      if (found.length < SWEPT_GROUPS_MAX) this.#sweptUs = nowUs;
    } catch (error) {
      diagnostics.warn(`the store in ClickHouse could not update its lists and retries: ${messageOf(error)}`);
      await new Promise<void>((resolve) => setTimer(resolve, RETRY_MS).unref());
    }
  }

  /** Derives some of the groups that are due. Returns whether there were any. */
  async #deriveSome(nowMs: number): Promise<boolean> {
    const ready = [...this.#due.values()].filter(({ dueMs }) => dueMs <= nowMs);
    const [first] = ready;
    if (first === undefined) return false;
    const together = ready.filter(({ tenant, isAlone }) => tenant === first.tenant && !isAlone).slice(0, GROUPS_MAX);
    const group = first.isAlone ? [first] : together;
    for (const { tenant, grp } of group) this.#due.delete(tenant + grp);
    try {
      await this.#deriveGroups(
        first.tenant,
        group.map(({ grp }) => grp),
      );
    } catch (error) {
      // Retries the groups one by one, because one of them may have caused the error.
      const dueMs = nowMs === Number.POSITIVE_INFINITY ? 0 : nowMs + RETRY_MS;
      for (const due of group) this.#due.set(due.tenant + due.grp, { ...due, dueMs, isAlone: true });
      throw error;
    }
    return true;
  }

  async #deriveGroups(tenant: string, grps: readonly string[]): Promise<void> {
    const groups = await readGroups(this.#db, tenant, grps, this.#prices);
    await this.#db.insertByDay(
      'runs',
      groups.flatMap((group) => rowsOf(tenant, group)),
    );
    const traceIds = groups.flatMap(({ traces }) => traces.map(({ id }) => id));
    const nowMs = performance.now();
    for (const [key, untilMs] of this.#pausedUntilMs) if (untilMs <= nowMs) this.#pausedUntilMs.delete(key);
    for (const { grp, runs } of groups) this.#pausedUntilMs.set(tenant + grp, nowMs + PAUSE_MS + runs.size);
    await this.#onChange(tenant, traceIds);
    await this.#placeAgain(tenant, groups);
  }

  /** Moves runs whose parent is in another group. Runs whose parent is unknown wait for it. */
  async #placeAgain(tenant: string, groups: readonly Group[]): Promise<void> {
    const misplaced = groups.flatMap((group) =>
      [...group.runs.values()].flatMap((run) => {
        const { fields, spans } = run;
        if (fields.trace_id !== undefined || run.keptTraceId !== undefined) return [];
        // The post is in another group, or has not arrived.
        const isPatch = fields.name === undefined && spans.parentSpan === undefined;
        const waitsFor = isPatch ? run.id : fields.parent_run_id;
        const isPlaced = waitsFor === undefined || (!isPatch && group.runs.has(waitsFor));
        return isPlaced ? [] : [{ group, id: run.id, waitsFor }];
      }),
    );
    if (misplaced.length === 0) return;
    await this.#db.insert(
      'waiting',
      misplaced.map(({ group: { grp }, id, waitsFor }) => ({
        tenant,
        id,
        grp,
        waits_for: waitsFor,
        since_us: this.#nowUs(),
      })),
    );
    // Another server may have moved that run, so the remembered place may be outdated.
    const places = await this.#places.reread(
      tenant,
      misplaced.map(({ waitsFor }) => waitsFor),
    );
    const moves = misplaced.flatMap(({ group: from, id, waitsFor }): Move[] => {
      const to = places.get(waitsFor);
      return to === undefined || to.grp === from.grp ? [] : [{ id, waitsFor, from, to }];
    });
    await this.#move(tenant, moves);
  }

  /** Moves runs to the groups of the runs that they wait for. Returns whether there were any. */
  async #moveWaiting(sinceUs: number): Promise<boolean> {
    const rows = await this.#db.rows<WaitingRow>(
      sql(
        `SELECT tenant, waiting.id AS id, waiting.waits_for AS waitsFor, waiting.grp AS from, place.grp AS to,
            place.day AS day
          FROM (SELECT * FROM waiting FINAL) AS waiting
          JOIN (SELECT tenant, id, argMax(grp, placed_us) AS grp, argMax(day, placed_us) AS day FROM run_ids
            WHERE placed_us >= ? AND (tenant, id) IN (SELECT tenant, waits_for FROM waiting)
            GROUP BY tenant, id) AS place
          ON place.tenant = waiting.tenant AND place.id = waiting.waits_for WHERE place.grp <> waiting.grp
          LIMIT ${MOVES_MAX}`,
        integer(sinceUs),
      ),
    );
    for (const tenant of new Set(rows.map((row) => row.tenant))) {
      const own = rows.filter((row) => row.tenant === tenant);
      const grps = [...new Set(own.map(({ from }) => from))];
      const groups = new Map<string, Group>();
      for (const group of await readGroups(this.#db, tenant, grps, this.#prices)) groups.set(group.grp, group);
      const moves = own.map(({ id, waitsFor, from, to, day }) => ({
        id,
        waitsFor,
        from: groups.get(from) ?? emptyGroup(from),
        to: { grp: to, day },
      }));
      await this.#move(tenant, moves);
    }
    return rows.length > 0;
  }

  async #move(tenant: string, moves: readonly Move[]): Promise<void> {
    if (moves.length === 0) return;
    const { changedGroups, leftTraceIds } = await moveRuns(this.#db, this.#places, tenant, moves, this.#nowUs);
    await this.#onChange(tenant, leftTraceIds);
    this.add(changedGroups.map((grp) => ({ tenant, grp })));
  }

  /** Returns groups with messages that another server has stored and not derived. */
  async #underivedGroups(sinceUs: number): Promise<ChangedGroup[]> {
    return await this.#db.rows<ChangedGroup>(
      sql(
        `SELECT tenant, grp FROM (
            SELECT tenant, grp, max(received_us) AS latest_us FROM messages WHERE received_us BETWEEN ? AND ?
            GROUP BY tenant, grp) AS stored
          LEFT JOIN (SELECT tenant, grp, max(intDiv(version, 4096)) AS derived_us FROM runs
            WHERE version >= toUInt64(?) * 4096 GROUP BY tenant, grp) AS derived USING (tenant, grp)
          WHERE latest_us > derived_us LIMIT ${SWEPT_GROUPS_MAX}`,
        integer(sinceUs - OTHERS_US),
        integer(this.#nowUs() - OTHERS_US),
        integer(sinceUs - OTHERS_US),
      ),
    );
  }
}
