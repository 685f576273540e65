import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { clearTimer, delay, setTimer } from '../../../platform/timers.ts';
import { grouped } from '../../domain/grouped.ts';
import type { PriceList } from '../../domain/prices.ts';
import { type ClickHouse, inParts, integer, sql } from './connection.ts';
import { type Group, readGroups, VERSION_US, VERSIONS_PER_US } from './groups.ts';
import { addLinks, type Link } from './links.ts';
import { readPlaces } from './places.ts';
import { rowsOf } from './run-row.ts';
import type { ChangedGroup } from './writer.ts';

/** Maximum number of groups that are derived at the same time. */
const GROUPS_MAX = 300;
/** Maximum number of tenants whose groups are derived at the same time. */
const TENANTS_MAX = 8;
/** Minimum time between two derivations of the same group, in milliseconds. Every run in the group adds 1 ms. */
const PAUSE_MS = 500;
/** Interval between sweeps, in milliseconds. */
const SWEEP_MS = 2_000;
/** Time during which only the receiver that stored a message derives it, in microseconds. */
const OTHERS_US = 10_000_000;
/** Allowance for slow inserts and for clock differences between receivers, in microseconds. */
const OVERLAP_US = 30_000_000;
const RETRY_MS = 1_000;
/** Maximum age of the messages that the first sweep reads, in microseconds. */
const LOOK_BACK_US = 86_400_000_000;
/** Maximum time range of one sweep query, in microseconds. */
const SWEPT_US_MAX = 3_600_000_000;
/** Maximum number of groups per sweep. Later sweeps find the rest. */
const SWEPT_GROUPS_MAX = 10_000;

/** Maximum number of links per query. */
const LINKS_MAX = 150;

interface Due extends ChangedGroup {
  readonly dueMs: number;
}

/**
 * Derives the rows of the table `runs` from the table `messages`. The same messages always produce the same rows, so
 * several receivers can derive the same group.
 */
export class Derivation {
  readonly #db: ClickHouse;
  readonly #prices: PriceList;
  readonly #onChange: (tenant: string, traceIds: readonly string[]) => Promise<void>;
  readonly #nowUs: () => number;
  readonly #due = new Map<string, Due>();
  /** Earliest time at which each group may be derived again, in milliseconds, keyed by tenant and group. */
  readonly #pausedUntilMs = new Map<string, number>();
  #sweptUs: number;
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  #hasFailed = false;
  #isClosed = false;

  constructor(
    db: ClickHouse,
    prices: PriceList,
    nowUs: () => number,
    onChange: (tenant: string, traceIds: readonly string[]) => Promise<void>,
  ) {
    this.#db = db;
    this.#prices = prices;
    this.#nowUs = nowUs;
    this.#onChange = onChange;
    this.#sweptUs = nowUs() - LOOK_BACK_US;
  }

  /** Number of groups with outdated rows. */
  get waiting(): number {
    return this.#due.size;
  }

  /** Schedules the derivation of groups. */
  add(groups: readonly ChangedGroup[]): void {
    for (const { tenant, grp } of groups) {
      const key = tenant + grp;
      if (!this.#due.has(key)) this.#due.set(key, { tenant, grp, dueMs: this.#pausedUntilMs.get(key) ?? 0 });
    }
    this.#schedule(0);
  }

  /** Starts the sweep. */
  start(): void {
    this.#schedule(SWEEP_MS);
  }

  /** Derives and links groups until none is left, without pausing between derivations of the same group. */
  async settle(): Promise<void> {
    do {
      while (this.#work !== undefined) await this.#work;
      while (this.#due.size > 0) await this.#deriveSome(Number.POSITIVE_INFINITY);
    } while ((await this.#linkWaiting(0)) || this.#work !== undefined || this.#due.size > 0);
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

  /** Derives groups now. */
  async derive(tenant: string, grps: readonly string[]): Promise<void> {
    for await (const groups of this.#groups(tenant, grps)) await this.#deriveGroups(tenant, groups);
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

  /** Links groups whose missing runs have arrived. Derives groups that another receiver has stored but not derived. */
  async #sweep(): Promise<void> {
    const nowUs = this.#nowUs();
    if (nowUs - this.#sweptUs < SWEEP_MS * 1_000) return;
    while (!this.#isClosed && (await this.#linkWaiting(this.#sweptUs - OVERLAP_US))) {}
    while (!this.#isClosed && this.#sweptUs < nowUs) {
      const untilUs = Math.min(nowUs, this.#sweptUs + SWEPT_US_MAX);
      const found = await this.#underivedGroups(this.#sweptUs - OVERLAP_US, untilUs);
      this.add(found);
      if (found.length < SWEPT_GROUPS_MAX) this.#sweptUs = untilUs;
      await this.#deriveDue();
    }
  }

  /** Derives the groups that are due, for up to `SWEEP_MS`. */
  async #deriveDue(): Promise<void> {
    const endMs = performance.now() + SWEEP_MS;
    while (!this.#isClosed && performance.now() < endMs && (await this.#deriveSome(performance.now()))) {}
  }

  /** Derives groups that are due. Returns false if no group was due. */
  async #deriveSome(nowMs: number): Promise<boolean> {
    const tenants = this.#nextGroups(nowMs);
    const results = await Promise.allSettled(
      [...tenants].map(async ([tenant, due]) => {
        for (const { grp } of due) this.#due.delete(tenant + grp);
        const grps = due.map(({ grp }) => grp);
        try {
          for await (const groups of this.#groups(tenant, grps, warnOfSize)) await this.#deriveGroups(tenant, groups);
        } catch (error) {
          const dueMs = nowMs === Number.POSITIVE_INFINITY ? 0 : nowMs + RETRY_MS;
          for (const one of due) this.#due.set(tenant + one.grp, { ...one, dueMs });
          throw error;
        }
      }),
    );
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    return results.length > 0;
  }

  /** Returns up to `GROUPS_MAX` due groups, by tenant. */
  #nextGroups(nowMs: number): Map<string, Due[]> {
    const tenants = new Set<string>();
    const groups: Due[] = [];
    for (const due of this.#due.values()) {
      if (due.dueMs > nowMs || (tenants.size === TENANTS_MAX && !tenants.has(due.tenant))) continue;
      tenants.add(due.tenant);
      if (groups.push(due) === GROUPS_MAX) break;
    }
    return grouped(groups, ({ tenant }) => tenant);
  }

  #groups(tenant: string, grps: readonly string[], skip?: (grp: string) => void): AsyncGenerator<Group[]> {
    return inParts(grps, (part) => readGroups(this.#db, tenant, part, this.#prices), skip);
  }

  async #deriveGroups(tenant: string, groups: readonly Group[]): Promise<void> {
    await this.#db.insert(
      'runs',
      groups.flatMap((group) => rowsOf(tenant, group)),
    );
    const traceIds = groups.flatMap(({ traces }) => traces.map(({ id }) => id));
    const nowMs = performance.now();
    for (const [key, untilMs] of this.#pausedUntilMs) if (untilMs <= nowMs) this.#pausedUntilMs.delete(key);
    for (const { grps: linked, runs } of groups) {
      for (const grp of linked) this.#pausedUntilMs.set(tenant + grp, nowMs + PAUSE_MS + runs.size);
    }
    await this.#onChange(tenant, traceIds);
    await this.#linkToOthers(tenant, groups);
  }

  /**
   * Links each group that refers to runs of other groups to these groups. A group waits for a run that has not arrived
   * yet.
   */
  async #linkToOthers(tenant: string, groups: readonly Group[]): Promise<void> {
    const waiting = groups.flatMap((group) => missingRuns(group).map((waitsFor) => ({ group, waitsFor })));
    if (waiting.length === 0) return;
    const sinceUs = this.#nowUs();
    await this.#db.insert(
      'waiting',
      waiting.map(({ group, waitsFor }) => ({ tenant, waits_for: waitsFor, grp: group.grps[0], since_us: sinceUs })),
    );
    const places = await readPlaces(
      this.#db,
      tenant,
      waiting.map(({ waitsFor }) => waitsFor),
    );
    const links = waiting.flatMap(({ group: { grps }, waitsFor }): Link[] => {
      const other = places.get(waitsFor)?.grp;
      return other === undefined || grps[0] === undefined || grps.includes(other) ? [] : [[grps[0], other]];
    });
    await this.#link(tenant, links, groups);
  }

  /** Links groups to the runs that they waited for, if these have arrived. Returns false if there were none. */
  async #linkWaiting(sinceUs: number): Promise<boolean> {
    const rows = await this.#db.rows<ChangedGroup & { other: string }>(
      sql(
        `SELECT DISTINCT tenant, waiting.grp AS grp, place.grp AS other FROM waiting
          JOIN (SELECT tenant, id, grp FROM run_ids
            WHERE added_us >= ? AND (tenant, id) IN (SELECT tenant, waits_for FROM waiting)) AS place
          ON place.tenant = waiting.tenant AND place.id = waiting.waits_for
          WHERE grp <> other AND (tenant, grp, other) NOT IN (
            SELECT tenant, grp, other FROM links WHERE (tenant, grp) IN (SELECT tenant, grp FROM waiting))
          LIMIT ${LINKS_MAX}`,
        integer(sinceUs),
      ),
    );
    for (const [tenant, own] of grouped(rows, (row) => row.tenant)) {
      const links = own.map(({ grp, other }): Link => [grp, other]);
      const groups = await readGroups(this.#db, tenant, links.flat(), this.#prices);
      await this.#link(tenant, links, groups);
    }
    return rows.length > 0;
  }

  /** Adds links and reports the traces of `groups` as changed, because linking can merge traces. */
  async #link(tenant: string, links: readonly Link[], groups: readonly Group[]): Promise<void> {
    if (links.length === 0) return;
    await addLinks(this.#db, tenant, links, this.#nowUs());
    const linked = new Set(links.flat());
    const traces = groups.filter(({ grps }) => grps.some((grp) => linked.has(grp))).flatMap((group) => group.traces);
    await this.#onChange(
      tenant,
      traces.map(({ id }) => id),
    );
    this.add([...linked].map((grp) => ({ tenant, grp })));
  }

  /** Returns groups whose messages or links are newer than their rows in `runs`. */
  async #underivedGroups(sinceUs: number, untilUs: number): Promise<ChangedGroup[]> {
    const period = [integer(sinceUs - OTHERS_US), integer(untilUs - OTHERS_US)];
    return await this.#db.rows<ChangedGroup>(
      sql(
        `SELECT tenant, grp FROM (
            SELECT tenant, grp, max(stored_us) AS latest_us FROM (
              SELECT tenant, grp, received_us AS stored_us FROM messages WHERE received_us BETWEEN ? AND ?
              UNION ALL SELECT tenant, grp, added_us AS stored_us FROM links WHERE added_us BETWEEN ? AND ?)
            GROUP BY tenant, grp) AS stored
          LEFT JOIN (SELECT tenant, arrayJoin(grps) AS grp, max(${VERSION_US}) AS derived_us FROM runs
            WHERE version >= toUInt64(?) * ${VERSIONS_PER_US} GROUP BY tenant, grp) AS derived USING (tenant, grp)
          WHERE latest_us > derived_us LIMIT ${SWEPT_GROUPS_MAX}`,
        ...period,
        ...period,
        integer(sinceUs - OTHERS_US),
      ),
    );
  }
}

function warnOfSize(grp: string): void {
  diagnostics.warn(`lists do not show the changes of trace ${grp}, because it is too large to read`);
}

/**
 * Returns the ids of runs whose messages may be in another group: runs without a trace id whose parent is not in this
 * group, these parents, and runs of which only a patch without a trace id has arrived.
 */
function missingRuns({ runs }: Group): string[] {
  return [...runs.values()].flatMap(({ id, fields, spans }) => {
    if (fields.trace_id !== undefined || spans.parentSpan !== undefined) return [];
    const { name, parent_run_id: parentId } = fields;
    if (parentId !== undefined) return runs.has(parentId) ? [] : [id, parentId];
    return name === undefined ? [id] : [];
  });
}
