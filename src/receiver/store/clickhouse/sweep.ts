import { type ClickHouse, integer, sql, string } from './connection.ts';
import type { GroupKey } from './groups.ts';

/** Maximum number of groups whose sizes are read at the same time. They are derived in steps, see `stepsOf`. */
export const GROUPS_MAX = 1_000;
/** Time during which only the receiver that stored a message derives it, in microseconds. */
export const OTHERS_US = 10_000_000;
/** How far the sweep goes back if its position is unknown, in microseconds. */
export const LOOK_BACK_US = 86_400_000_000;

export interface SweptRange {
  readonly untilUs: number;
  readonly position: number;
}

export interface SweptGroup extends GroupKey {
  readonly position: number;
}

/** Returns groups whose messages are newer than their rows, in an order that is different for each receiver. */
export async function underivedGroups(
  db: ClickHouse,
  receiverId: string,
  sinceUs: number,
  { untilUs, position }: SweptRange,
): Promise<SweptGroup[]> {
  const since = integer(sinceUs);
  return await db.rows(
    sql`SELECT tenant, group_id, cityHash64(tenant, group_id, ${string(receiverId)}) % 4294967296 AS position FROM (
        SELECT tenant, group_id, max(received_us) AS latest_us FROM messages
          WHERE received_us BETWEEN ${since} AND ${integer(untilUs)} GROUP BY tenant, group_id) AS stored
      LEFT JOIN (SELECT tenant, group_id, max(seen_us) AS derived_us FROM runs
        WHERE seen_us >= ${since} GROUP BY tenant, group_id) AS derived USING (tenant, group_id)
      WHERE latest_us > derived_us AND position > ${integer(position)}
      ORDER BY position LIMIT ${GROUPS_MAX} WITH TIES`,
  );
}

/**
 * Returns the position of the last sweep of any receiver, or the time of the first message. If the clock of
 * ClickHouse was ahead, so that the position is in the future, returns the time one day ago.
 */
export async function earlierPositionUs(db: ClickHouse, nowUs: number): Promise<number> {
  const sweptUs = await latestTimeUs(db, 'swept');
  if (sweptUs > nowUs) return nowUs - LOOK_BACK_US;
  if (sweptUs > 0) return sweptUs;
  const [row] = await db.rows<{ us: number }>(sql('SELECT min(received_us) AS us FROM messages'));
  return row?.us || nowUs - OTHERS_US;
}

/** Returns a time in the table `times` in microseconds, or 0 if it is not stored. */
export async function latestTimeUs(db: ClickHouse, name: 'swept' | 'retention' | 'age'): Promise<number> {
  const [row] = await db.rows<{ us: number }>(sql`SELECT max(times.us) AS us FROM times WHERE name = ${string(name)}`);
  return row?.us ?? 0;
}
