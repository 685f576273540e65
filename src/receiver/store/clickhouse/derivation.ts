import { randomUUID } from 'node:crypto';
import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import { clearTimer, delay, setTimer } from '../../../platform/timers.ts';
import type { PriceList } from '../../domain/cost/prices.ts';
import { grouped } from '../../domain/grouped.ts';
import type { ClickHouseChanges } from './changes.ts';
import type { StoreClock } from './clock.ts';
import { type ClickHouse, QueryLimitError } from './connection.ts';
import type { ClickHouseDeletions } from './deletion.ts';
import { GROUP_MESSAGES_MAX, type GroupKey, groupKeyText, keysOf, stepsOf } from './groups.ts';
import { joinGroups } from './joins.ts';
import { RowWriter } from './run-row.ts';
import {
  earlierPositionUs,
  GROUPS_MAX,
  LOOK_BACK_US,
  OTHERS_US,
  type SweptGroup,
  type SweptRange,
  underivedGroups,
} from './sweep.ts';

/** Maximum number of groups that wait in memory. The sweep finds the others. */
const DUE_MAX = 100_000;
/** Minimum time between two derivations of the same group, in milliseconds. Every message in the group adds 1 ms. */
const PAUSE_MS = 500;
/** Minimum time between two derivations, in milliseconds. */
const INTERVAL_MS = 800;
const SWEEP_MS = 2_000;
/** Allowance for slow inserts, in microseconds. */
const OVERLAP_US = 30_000_000;
/** Pause after the first failure, in milliseconds. It doubles with each further failure in a row. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
/** Minimum interval between log lines about failed derivations, in milliseconds. */
const LOG_INTERVAL_MS = 60_000;
/** Number of groups that are left alone from which on derivation waits for some of them. */
const LEFT_MAX = 10_000;
/** Time after which a group that failed by itself is derived again, in milliseconds. It doubles with each failure. */
const LEFT_MS = 10_000;
const LEFT_MS_MAX = 600_000;
/** Maximum time range of one sweep query, in microseconds. */
const SWEPT_US_MAX = 3_600_000_000;
/** Interval at which the position of the sweep is stored, in microseconds. */
const STORED_US = 60_000_000;
/** Age of the oldest change that lists do not show, from which on the store accepts no runs, in microseconds. */
const BEHIND_US = 60_000_000;

interface Due extends GroupKey {
  readonly dueMs: number;
  readonly addedMs: number;
}

/** A group that could not be derived with others. */
interface LeftGroup extends GroupKey {
  /** Zero if the group has not been derived by itself. */
  readonly dueMs: number;
  readonly delayMs: number;
  /** Position of the sweep when the group was left alone. After a restart, the sweep begins there. */
  readonly sinceUs: number;
}

/**
 * Derives the rows of the table `runs` from the table `messages`. The same messages always produce the same rows, so
 * several receivers can derive the same group.
 *
 * A receiver derives the groups whose messages it has stored. A group that is not derived within 10 s is left to the sweep,
 * in which each receiver asks for groups with outdated rows, in an order of its own, until there are none.
 *
 * After a failure, derivation pauses, and the same groups are derived again. If they fail again, they are left alone: the
 * other groups go on, and those of each tenant are derived apart from them, first one by itself, and later again if it fails.
 */
export class Derivation {
  readonly #db: ClickHouse;
  readonly #rows: RowWriter;
  readonly #deletions: ClickHouseDeletions;
  readonly #clock: StoreClock;
  readonly #due = new Map<string, Due>();
  /** Earliest time at which each group may be derived again, in milliseconds, by key. */
  readonly #pausedUntilMs = new Map<string, number>();
  readonly #left = new Map<string, LeftGroup>();
  #startedMs = Number.POSITIVE_INFINITY;
  /** Until when all messages are derived. Undefined until the position of earlier sweeps has been read. */
  #sweptUs: number | undefined;
  #storedUs = 0;
  /** Maximum time range of the next sweep query, in microseconds. */
  #spanUs = SWEPT_US_MAX;
  /** End of the range that the sweep has begun, and the position of the last group that it has derived in this range. */
  #range: SweptRange | undefined;
  readonly #id: string = randomUUID();
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  /** When the last work ended, in milliseconds. */
  #endedMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #loggedMs = Number.NEGATIVE_INFINITY;
  /** The derivation of groups that are left alone. */
  #leftWork: Promise<void> | undefined;
  #isClosed = false;

  constructor(
    db: ClickHouse,
    prices: PriceList,
    changes: ClickHouseChanges,
    clock: StoreClock,
    deletions: ClickHouseDeletions,
  ) {
    this.#db = db;
    this.#deletions = deletions;
    this.#rows = new RowWriter(db, prices, changes, deletions);
    this.#clock = clock;
  }

  /** Number of groups with outdated rows. */
  get waiting(): number {
    return this.#due.size + this.#left.size;
  }

  /** Whether lists lack changes that are older than a minute, other than those of groups that are left alone. */
  get isBehind(): boolean {
    if (this.#sweptUs === undefined) return (performance.now() - this.#startedMs) * 1_000 > BEHIND_US;
    return this.#clock.nowUs() - this.#sweptUs > BEHIND_US;
  }

  add(groups: readonly GroupKey[]): void {
    const addedMs = performance.now();
    for (const { tenant, group_id } of groups) {
      const key = groupKeyText({ tenant, group_id });
      if (!this.#due.has(key) && !this.#left.has(key) && this.#due.size < DUE_MAX)
        this.#due.set(key, { tenant, group_id, addedMs, dueMs: this.#pausedUntilMs.get(key) ?? 0 });
    }
    this.#schedule(this.#endedMs + INTERVAL_MS - performance.now());
  }

  start(): void {
    this.#startedMs = performance.now();
    this.#schedule(SWEEP_MS);
  }

  /** Derives groups until none is left, without pausing between derivations of the same group. */
  async settle(): Promise<void> {
    do {
      while (this.#work !== undefined) await this.#work;
      while (this.#due.size > 0) await this.#deriveSome(Number.POSITIVE_INFINITY);
    } while (this.#work !== undefined || this.#due.size > 0);
  }

  /** Derives the groups whose rows are outdated now, also those of other receivers. Rejects if one cannot be derived. */
  async deriveAll(): Promise<void> {
    await this.#work;
    // Those of this receiver, also if its clock has jumped.
    await this.derive([...this.#due.values()]);
    const untilUs = this.#clock.nowUs();
    const sinceUs = (this.#sweptUs ?? (await earlierPositionUs(this.#db, untilUs))) - OVERLAP_US;
    for (let position: number | undefined = -1; position !== undefined; ) {
      const found = await underivedGroups(this.#db, this.#id, sinceUs, { untilUs, position });
      await this.derive(found);
      position = found[GROUPS_MAX - 1] && found.at(-1)?.position;
    }
  }

  /** Stops the sweep and derives the scheduled groups. If ClickHouse fails, another receiver derives them later. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimer(this.#timer);
    await Promise.all([this.#work, this.#leftWork]);
    try {
      while (await this.#deriveSome(Number.POSITIVE_INFINITY)) {}
    } catch (error) {
      diagnostics.warn(`the store in ClickHouse could not update its lists before it closed: ${messageOf(error)}`);
    }
  }

  /** Derives groups now. Rejects if one cannot be derived. */
  async derive(groups: readonly GroupKey[]): Promise<void> {
    await this.#derive(new Map(groups.map((group) => [groupKeyText(group), group])));
  }

  /** Derives groups by their keys, and deletes those that were derived from the map and from `#left`. */
  async #derive(groups: Map<string, GroupKey>): Promise<void> {
    if (groups.size === 0) return;
    await this.#deletions.refresh();
    const traces = await joinGroups(this.#db, this.#clock.nowUs(), [...groups.values()]);
    for (const step of await stepsOf(this.#db, traces)) {
      await this.#rows.write(step);
      const nowMs = performance.now();
      for (const [key, untilMs] of this.#pausedUntilMs) if (untilMs <= nowMs) this.#pausedUntilMs.delete(key);
      for (const group of step) {
        const untilMs = nowMs + PAUSE_MS + Math.min(group.messages, GROUP_MESSAGES_MAX);
        for (const key of keysOf(group).map(groupKeyText)) {
          this.#pausedUntilMs.set(key, untilMs);
          groups.delete(key);
          this.#left.delete(key);
        }
      }
    }
  }

  /** Derives groups as `#derive` does. After the second failure in a row, leaves the others alone. */
  async #deriveOrLeave(groups: Map<string, GroupKey>): Promise<void> {
    try {
      await this.#derive(groups);
    } catch (error) {
      if (this.#failures === 0 || this.#left.size >= LEFT_MAX) throw error;
      const sinceUs = this.#sweptUs ?? 0;
      for (const [key, { tenant, group_id }] of groups)
        this.#left.set(key, { tenant, group_id, dueMs: 0, delayMs: LEFT_MS, sinceUs });
    }
  }

  /**
   * Derives the groups that are left alone and due, for up to `SWEEP_MS` for each tenant: one by itself, then twice as many
   * each time, and again one after a failure. One line reports the groups that failed by themselves for the first time.
   */
  async #deriveLeft(): Promise<void> {
    const nowMs = performance.now();
    const due = [...this.#left].filter(([, { dueMs }]) => dueMs <= nowMs);
    const failed: [id: string, error: unknown][] = [];
    for (const groups of grouped(due, ([, { tenant }]) => tenant).values()) {
      const endMs = performance.now() + SWEEP_MS;
      for (let at = 0, size = 1; at < groups.length && performance.now() < endMs && !this.#isClosed; ) {
        const part = new Map(groups.slice(at, at + size));
        at += size;
        try {
          await this.#derive(part);
          for (const key of part.keys()) this.#left.delete(key);
          size = Math.min(2 * size, GROUPS_MAX);
        } catch (error) {
          for (const [key, group] of part) {
            this.#left.delete(key);
            this.#left.set(key, size > 1 ? group : delayed(group));
            if (size === 1 && group.dueMs === 0) failed.push([group.group_id, error]);
          }
          size = 1;
        }
      }
    }
    const [[id, error] = []] = failed;
    if (id === undefined || this.#isClosed) return;
    const reason =
      error instanceof QueryLimitError ? 'it is too large to read' : `they cannot be derived: ${messageOf(error)}`;
    const traces = failed.length;
    diagnostics.warn(`lists do not show the changes of ${traces} traces, the first ${id}, because ${reason}`);
  }

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
      await this.#deletions.refresh();
      this.#leftWork ??= this.#deriveLeft().finally(() => {
        this.#leftWork = undefined;
      });
      const endMs = performance.now() + SWEEP_MS;
      while (!this.#isClosed && performance.now() < endMs && (await this.#deriveSome(performance.now()))) {}
      await this.#sweep();
      this.#failures = 0;
    } catch (error) {
      const nowMs = performance.now();
      if (nowMs - this.#loggedMs > LOG_INTERVAL_MS && !this.#isClosed) {
        this.#loggedMs = nowMs;
        diagnostics.warn(`the store in ClickHouse could not update its lists and retries: ${messageOf(error)}`);
      }
      await delay(Math.min(RETRY_MS * 2 ** this.#failures, RETRY_MS_MAX), undefined);
      this.#failures += 1;
    }
  }

  /** Derives the groups whose rows are outdated, except those of the last 10 s, for up to `SWEEP_MS`. */
  async #sweep(): Promise<void> {
    await this.#clock.synchronize();
    const endMs = performance.now() + SWEEP_MS;
    const untilUs = this.#clock.nowUs() - OTHERS_US;
    this.#sweptUs ??= await earlierPositionUs(this.#db, this.#clock.nowUs());
    if (untilUs - this.#sweptUs < SWEEP_MS * 1_000) return;
    while (!this.#isClosed && this.#sweptUs < untilUs && performance.now() < endMs) {
      // The end stays the same until the range is finished: later groups may come before the position.
      const range: SweptRange = this.#range ?? {
        untilUs: Math.min(untilUs, this.#sweptUs + this.#spanUs),
        position: -1,
      };
      const found = await this.#foundIn(this.#sweptUs - OVERLAP_US, range);
      const keyed = found.map((group) => [groupKeyText(group), group] as const);
      await this.#deriveOrLeave(new Map(keyed.filter(([key]) => !this.#left.has(key))));
      const last = found[GROUPS_MAX - 1] && found.at(-1);
      this.#range = last && { ...range, position: last.position };
      if (last === undefined) this.#sweptUs = range.untilUs;
    }
    const leftUs = Math.min(...[...this.#left.values()].map(({ sinceUs }) => sinceUs));
    const positionUs = Math.min(this.#sweptUs, Math.max(leftUs, untilUs - LOOK_BACK_US));
    if (positionUs - this.#storedUs < STORED_US) return;
    this.#storedUs = positionUs;
    await this.#db.insert('times', [{ name: 'swept', us: this.#storedUs }]);
  }

  /** Derives groups that are due. Returns false if no group was due. */
  async #deriveSome(nowMs: number): Promise<boolean> {
    const due = new Map(this.#nextGroups(nowMs).map((group) => [groupKeyText(group), group]));
    const { size } = due;
    for (const key of due.keys()) this.#due.delete(key);
    try {
      await this.#deriveOrLeave(due);
    } catch (error) {
      for (const [key, group] of due) this.#due.set(key, group);
      throw error;
    }
    return size > 0;
  }

  /** Returns up to `GROUPS_MAX` due groups. Leaves those that have waited for too long to the sweep, unless it fails. */
  #nextGroups(nowMs: number): Due[] {
    const groups: Due[] = [];
    for (const [key, due] of this.#due) {
      if (due.dueMs > nowMs) continue;
      const isLate = nowMs - Math.max(due.addedMs, due.dueMs) > OTHERS_US / 1_000;
      if (isLate && nowMs !== Number.POSITIVE_INFINITY && this.#failures === 0) this.#due.delete(key);
      else if (groups.push(due) === GROUPS_MAX) break;
    }
    return groups;
  }

  /** Returns groups that the sweep derives next. Halves the range of the next query if this one fails. */
  async #foundIn(sinceUs: number, range: SweptRange): Promise<SweptGroup[]> {
    try {
      const found = await underivedGroups(this.#db, this.#id, sinceUs, range);
      this.#spanUs = Math.min(2 * this.#spanUs, SWEPT_US_MAX);
      return found;
    } catch (error) {
      this.#spanUs = Math.max(this.#spanUs / 2, SWEEP_MS * 1_000);
      this.#range = undefined;
      throw error;
    }
  }
}

function delayed({ delayMs, ...group }: LeftGroup): LeftGroup {
  return { ...group, dueMs: performance.now() + delayMs, delayMs: Math.min(2 * delayMs, LEFT_MS_MAX) };
}
