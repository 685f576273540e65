import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import type { Ages } from '../../domain/retention/ages.ts';
import type { RetentionTime } from '../../domain/retention/retention-time.ts';
import { StoreError } from '../store.ts';
import { type ClickHouse, integer, integers, type Sql, sql, string, strings } from './connection.ts';
import { deleteRemoved, deleteWhere } from './deletion.ts';
import { dayOfMs, TOMBSTONE } from './messages.ts';
import { EARLIEST_DAY } from './places.ts';
import { latestTimeUs } from './sweep.ts';

const DAY_MS = 86_400_000;
/** Extra retention time of tombstones, in milliseconds. They must outlast messages that arrive late. */
const TOMBSTONES_MS = 30 * DAY_MS;
/** Age from which on messages are derived, in milliseconds. */
const DERIVED_MS = 3_600_000;

/** The retention time of a database, which its receivers share. */
export class ClickHouseRetentionTime {
  readonly #db: ClickHouse;

  constructor(db: ClickHouse) {
    this.#db = db;
  }

  /** Checks the clocks. Only one receiver moves the time, because the others then count from when they saw the new one. */
  async check(time: RetentionTime, wallMs: number): Promise<void> {
    const storedMs = (await this.read()) ?? 0;
    const timeMs = time.check(wallMs, storedMs || undefined);
    if (timeMs === undefined) return;
    // Without a deletion, which would undo that another process has set the time to the clock.
    if (timeMs > storedMs) await this.#insert(timeMs);
    else await this.write(timeMs);
  }

  async read(): Promise<number | undefined> {
    return (await latestTimeUs(this.#db, 'age')) / 1_000 || undefined;
  }

  async write(timeMs: number): Promise<void> {
    await deleteWhere(this.#db, 'times', sql`name = 'age' AND us > ${integer(timeMs * 1_000)}`, 'now');
    await this.#insert(timeMs);
  }

  #insert(timeMs: number): Promise<void> {
    return this.#db.insert('times', [{ name: 'age', us: timeMs * 1_000 }]);
  }
}

/**
 * Deletes traces that are older than their maximum age, and the messages of deleted traces. Days older than every maximum
 * age are dropped as a whole. The age of a day is measured from its end, or from its latest message if that arrived
 * later. If a step fails, the remaining steps still run before the promise rejects.
 */
export async function expire(db: ClickHouse, ages: Ages, nowMs: number): Promise<void> {
  const ofProjects = Object.values(ages.projectMaxAgeMs).flatMap((projects) => Object.values(projects));
  const longestMs = Math.max(ages.maxAgeMs, ...ofProjects);
  const option = longestMs > ages.maxAgeMs ? 'projectMaxAgeMs' : 'maxAgeMs';
  const steps = [
    // ClickHouse's type `Date` cannot represent days before 1970.
    () => dropDays(db, option, Math.max(nowMs - longestMs, TOMBSTONES_MS), nowMs),
    () => deleteRemoved(db, dayOfMs(nowMs - TOMBSTONES_MS), (nowMs - DERIVED_MS) * 1_000),
    () => deleteExpiredProjects(db, ages, nowMs, longestMs),
    () => applyDeletions(db),
  ];
  const failures = new Set<string>();
  for (const step of steps) await step().catch((error: unknown) => failures.add(messageOf(error)));
  if (failures.size > 0) throw new StoreError('unavailable', [...failures].join('; '));
}

async function dropDays(db: ClickHouse, option: string, beforeMs: number, nowMs: number): Promise<void> {
  const [beforeDay, beforeUs] = [string(dayOfMs(beforeMs)), integer(beforeMs * 1_000)];
  const messageDays = await db.rows<{ day: string; tombstones: number }>(
    sql`SELECT day, countIf(kind >= ${TOMBSTONE}) AS tombstones FROM messages WHERE day < toDate(${beforeDay})
      GROUP BY day HAVING maxIf(received_us, kind < ${TOMBSTONE}) < ${beforeUs}`,
  );
  for (const { day, tombstones } of messageDays) {
    if (tombstones === 0 || day < dayOfMs(beforeMs - TOMBSTONES_MS)) await dropPartition(db, 'messages', day);
    else await deleteWhere(db, 'messages', sql`kind < ${TOMBSTONE} AND day = toDate(${string(day)})`, 'now');
  }
  // The messages of runs with other days are stored under the day on which they arrived.
  const isOfMessages = sql`day BETWEEN toDate(${string(EARLIEST_DAY)}) AND toDate(${beforeDay})`;
  const runDays = await db.rows<{ day: string }>(
    sql`SELECT day FROM runs WHERE day < toDate(${beforeDay}) OR day > toDate(${string(dayOfMs(nowMs + DAY_MS))})
      GROUP BY day HAVING if(${isOfMessages},
        day NOT IN (SELECT day FROM messages WHERE day < toDate(${beforeDay}) AND kind < ${TOMBSTONE}),
        max(seen_us) < ${beforeUs})`,
  );
  for (const { day } of runDays) {
    await loggingRuns(db, option, sql`day = toDate(${string(day)})`, () => dropPartition(db, 'runs', day));
  }
  const received = sql`max(day) < toDate(${beforeDay}) AND max(received_us) < ${beforeUs}`;
  await dropPartitions(db, 'attachments', sql('day'), received);
  await dropPartitions(db, 'feedback', MONTH_OF_FEEDBACK, sql`max(changed_us) < ${beforeUs}`);
  const placesBeforeMs = beforeMs - TOMBSTONES_MS;
  const isOldDay = sql`max(day) < toDate(${string(dayOfMs(placesBeforeMs))})`;
  const added = sql`${isOldDay} AND max(added_us) < ${integer(placesBeforeMs * 1_000)}`;
  await dropPartitions(db, 'run_ids', sql('toYYYYMM(day)'), added);
}

const MONTH_OF_FEEDBACK = sql('toYYYYMM(toDateTime(intDiv(n, 1000000)))');

async function dropPartitions(db: ClickHouse, table: string, partition: Sql, having: Sql): Promise<void> {
  const rows = await db.rows<{ name: string }>(
    sql`SELECT toString(${partition}) AS name FROM ${sql(table)} GROUP BY ${partition} HAVING ${having}`,
  );
  for (const { name } of rows) await dropPartition(db, table, name);
}

/** Deletes the groups of every trace that is older than its project's maximum age. */
async function deleteExpiredProjects(db: ClickHouse, ages: Ages, nowMs: number, longestMs: number): Promise<void> {
  const shorter = Object.entries(ages.projectMaxAgeMs).flatMap(([tenant, projects]) =>
    Object.entries(projects).map(([project, ageMs]) => ({ tenant, project, ageMs })),
  );
  if (ages.maxAgeMs === longestMs && shorter.every(({ ageMs }) => ageMs === longestMs)) return;
  const keys = strings(shorter.map(({ tenant, project }) => `${tenant}\n${project}`));
  const timesUs = integers(shorter.map(({ ageMs }) => (nowMs - ageMs) * 1_000));
  const beforeUs = sql`transform(concat(tenant, '\\n', project), ${keys}, ${timesUs}, ${integer((nowMs - ages.maxAgeMs) * 1_000)})`;
  // `seen_us` is the arrival time of the trace's latest message.
  const ofGroup = sql`(tenant, group_id) IN (SELECT tenant, group_id FROM runs FINAL WHERE (tenant, trace) IN (
    SELECT tenant, trace FROM runs FINAL WHERE is_root = 1 AND greatest(start_us, seen_us) < ${beforeUs}))`;
  const ofRun = sql`(tenant, run) IN (SELECT tenant, id FROM runs WHERE ${ofGroup})`;
  await deleteWhere(db, 'attachments', ofRun, 'now');
  await deleteWhere(db, 'feedback', ofRun, 'now');
  await deleteWhere(db, 'messages', sql`kind < ${TOMBSTONE} AND ${ofGroup}`, 'now');
  // Last, because the other deletions use these rows.
  await loggingRuns(db, 'projectMaxAgeMs or else maxAgeMs', ofGroup, () => deleteWhere(db, 'runs', ofGroup));
}

/** Deletes runs that match a condition, and logs how many they are, and the option that sets their age. */
async function loggingRuns(db: ClickHouse, option: string, where: Sql, remove: () => Promise<void>): Promise<void> {
  const [found] = await db.rows<{ runs: number }>(sql`SELECT count() AS runs FROM runs FINAL WHERE ${where}`);
  await remove();
  const runs = found?.runs ?? 0;
  if (runs > 0) diagnostics.info(`the store in ClickHouse has deleted runs older than ${option}: ${runs}`);
}

/** Removes deleted rows from the disk. Otherwise they stay there until ClickHouse merges their parts. */
async function applyDeletions(db: ClickHouse): Promise<void> {
  const tables = await db.rows<{ table: string }>(
    sql`SELECT DISTINCT table FROM system.parts
      WHERE database = currentDatabase() AND active AND has_lightweight_delete`,
  );
  for (const { table } of tables) await db.command(sql`ALTER TABLE ${sql(table)} APPLY DELETED MASK`);
}

async function dropPartition(db: ClickHouse, table: string, partition: string): Promise<void> {
  await db.command(sql`ALTER TABLE ${sql(table)} DROP PARTITION ${string(partition)}`);
}
