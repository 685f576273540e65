import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { clearTimer, setTimer } from '../../../base/timers.ts';
import type { Prices } from '../prices.ts';
import { type ClickHouse, integer, sql, string, uuid, uuids } from './connection.ts';
import { type Group, readGroups } from './groups.ts';
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
/** Tables whose rows move with a run, and their columns with the run's id. */
const MOVED = [
  ['messages', 'id'],
  ['runs', 'id'],
  ['feedback', 'run'],
] as const;
/** Time that a server looks back when it starts, in microseconds. */
const LOOK_BACK_US = 86_400_000_000;
/** Maximum number of groups that a sweep finds. The next sweep finds the others. */
const SWEPT_GROUPS_MAX = 10_000;

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
      // The groups are derived one by one, because one of them may be the reason.
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
        const parent = fields.parent_run_id;
        if (parent !== undefined) return group.runs.has(parent) ? [] : [{ group, id: run.id, waitsFor: parent }];
        return fields.name === undefined && spans.parentSpan === undefined
          ? [{ group, id: run.id, waitsFor: run.id }]
          : [];
      }),
    );
    if (misplaced.length === 0) return;
    const places = await this.#places.stored(
      tenant,
      misplaced.map(({ waitsFor }) => waitsFor),
    );
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
    const moves = misplaced.flatMap(({ group: { grp: from }, id, waitsFor }) => {
      const { grp: to = from, day = '' } = places.get(waitsFor) ?? {};
      return to === from ? [] : [{ tenant, id, from, to, day }];
    });
    const byId = new Map(groups.map((group) => [group.grp, group]));
    for (const { id, from, to, day } of finalMoves(moves)) {
      const group = byId.get(from);
      if (group !== undefined) await this.#move(tenant, group, id, { grp: to, day });
    }
  }

  /** Moves runs to the group of the run that they wait for. Returns whether runs were moved. */
  async #moveWaiting(sinceUs: number): Promise<boolean> {
    const rows = await this.#db.rows<WaitingMove>(
      sql(
        `SELECT tenant, waiting.id AS id, waiting.grp AS from, place.grp AS to, place.day AS day
          FROM (SELECT * FROM waiting FINAL) AS waiting
          JOIN (SELECT tenant, id, argMax(grp, placed_us) AS grp, argMax(day, placed_us) AS day FROM run_ids
            WHERE placed_us >= ? AND (tenant, id) IN (SELECT tenant, waits_for FROM waiting)
            GROUP BY tenant, id) AS place
          ON place.tenant = waiting.tenant AND place.id = waiting.waits_for WHERE place.grp <> waiting.grp`,
        integer(sinceUs),
      ),
    );
    for (const { tenant, id, from, to, day } of finalMoves(rows)) {
      const [group] = await readGroups(this.#db, tenant, [from], this.#prices);
      if (group !== undefined) await this.#move(tenant, group, id, { grp: to, day });
      else await this.#follow(tenant, id, to);
    }
    return rows.length > 0;
  }

  /** Moves a run and the runs below it to another group. */
  async #move(
    tenant: string,
    from: Group,
    id: string,
    to: { readonly grp: string; readonly day: string },
  ): Promise<void> {
    const moved = [...from.runs.values()].filter((run) => isBelow(from, run.id, id)).map((run) => run.id);
    if (moved.length > 0) {
      await this.#places.add(
        moved.map((one) => [tenant, one, to] as const),
        this.#nowUs(),
      );
      const [own, group, ids] = [string(tenant), uuid(from.grp), uuids(moved)];
      await this.#db.command(
        sql(
          `INSERT INTO messages (tenant, day, grp, id, kind, received_us, fields, facts, inputs, outputs, events)
            SELECT tenant, day, toUUID(?), id, kind, received_us, fields, facts, inputs, outputs, events FROM messages
            WHERE tenant = ? AND grp = ? AND id IN (?)`,
          uuid(to.grp),
          own,
          group,
          ids,
        ),
      );
      await this.#db.command(
        sql(
          `INSERT INTO feedback SELECT * REPLACE (toUUID(?) AS grp)
            FROM (SELECT * FROM feedback FINAL WHERE tenant = ? AND grp = ? AND run IN (?))`,
          uuid(to.grp),
          own,
          group,
          ids,
        ),
      );
      for (const [table, run] of MOVED) {
        await this.#db.command(
          sql(`DELETE FROM ${table} WHERE tenant = ? AND grp = ? AND ${run} IN (?)`, own, group, ids),
        );
      }
      const left = from.traces.filter(({ members }) => members.every((run) => moved.includes(run.id)));
      await this.#onChange(
        tenant,
        left.map((trace) => trace.id),
      );
    }
    await this.#follow(tenant, id, to.grp);
    this.add([from.grp, to.grp].map((grp) => ({ tenant, grp })));
  }

  /** Stores the group of a waiting run, so that the run follows if the other run moves again. */
  async #follow(tenant: string, id: string, grp: string): Promise<void> {
    await this.#db.command(
      sql(
        `INSERT INTO waiting SELECT tenant, id, ? AS grp, waits_for, ? AS since_us FROM waiting FINAL
          WHERE tenant = ? AND id = ?`,
        uuid(grp),
        integer(this.#nowUs()),
        string(tenant),
        uuid(id),
      ),
    );
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

/** A waiting run whose other run is in another group. */
interface WaitingMove {
  readonly tenant: string;
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly day: string;
}

/** Replaces each group that will itself move by the group to which it moves. Otherwise, runs would move level by level. */
function finalMoves(moves: readonly WaitingMove[]): WaitingMove[] {
  const byGroup = new Map(moves.map((move) => [move.tenant + move.from, move]));
  return moves.map((move) => {
    const path = new Set<WaitingMove>();
    let last: WaitingMove = move;
    for (let next: WaitingMove | undefined = move; next !== undefined && !path.has(next); ) {
      path.add(next);
      last = next;
      next = byGroup.get(next.tenant + next.to);
    }
    return last.to === move.from ? move : { ...move, to: last.to, day: last.day };
  });
}

function isBelow({ runs, places }: Group, id: string, aboveId: string): boolean {
  const path = new Set<string>();
  for (let at: string | undefined = id; at !== undefined && !path.has(at); ) {
    if (at === aboveId) return true;
    path.add(at);
    const run = runs.get(at);
    if (run === undefined || (at !== aboveId && run.fields.trace_id !== undefined)) return false;
    at = places.parentIdOf(run);
  }
  return false;
}
