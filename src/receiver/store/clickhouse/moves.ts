import { type ClickHouse, type InsertRow, type Sql, sql, string, strings, uuids } from './connection.ts';
import { type Group, grouped } from './groups.ts';
import { MOVED, type Place, TOMBSTONE } from './messages.ts';
import type { PlaceFinder } from './places.ts';
import { deletedRowsOf } from './run-row.ts';

/** A run to move, with the runs below it, to the group of the run that it waits for. */
export interface Move {
  readonly id: string;
  readonly waitsFor: string;
  readonly from: Group;
  readonly to: Place;
}

/** The result of moving runs. */
export interface Moved {
  readonly changedGroups: readonly string[];
  /** Ids of traces that have no more runs. */
  readonly leftTraceIds: readonly string[];
}

interface Pair {
  readonly from: Group;
  readonly id: string;
}

interface StoredKey {
  readonly day: string;
  readonly grp: string;
  readonly id: string;
  readonly digest: string;
}

/** Runs in a query. ClickHouse limits the size of a parameter to 128 KiB. */
const RUNS_MAX = 1_000;

/**
 * Moves runs, their messages and their feedback to other groups. A run whose target moves as well is moved only once.
 */
export async function moveRuns(
  db: ClickHouse,
  places: PlaceFinder,
  tenant: string,
  moves: readonly Move[],
  nowUs: () => number,
): Promise<Moved> {
  const targets = new Map<string, Place>();
  const pairs: Pair[] = [];
  const changed = new Set<string>();
  const lasts = lastTargets(moves);
  for (const [move, to] of lasts) {
    if (to.grp === move.from.grp) continue;
    changed.add(move.from.grp).add(to.grp);
    for (const { id } of move.from.runs.values()) {
      if (!isBelow(move.from, id, move.id)) continue;
      if (!targets.has(id)) targets.set(id, to);
      pairs.push({ from: move.from, id });
    }
  }
  for (let at = 0; at < pairs.length; at += RUNS_MAX) {
    const some = pairs.slice(at, at + RUNS_MAX);
    const placed = new Map(some.flatMap(({ id }) => [[id, targets.get(id)] as const]));
    await places.add(
      [...placed].flatMap(([id, place]) => (place === undefined ? [] : [[tenant, id, place] as const])),
      nowUs(),
    );
    await moveMessages(db, tenant, some, targets, nowUs);
    await moveFeedback(db, tenant, some, targets);
    await db.insertByDay('runs', rowsOfMoved(tenant, some, nowUs));
  }
  const followed = [...lasts].map(([{ id, waitsFor }, { grp }]) => {
    return { tenant, id, grp, waits_for: waitsFor, since_us: nowUs() };
  });
  await db.insert('waiting', followed);
  const left = [...grouped(pairs, ({ from }) => from)].flatMap(([{ traces }, members]) => {
    const ids = new Set(members.map(({ id }) => id));
    return traces.filter((trace) => trace.members.every((run) => ids.has(run.id)));
  });
  return { changedGroups: [...changed], leftTraceIds: left.map((trace) => trace.id) };
}

/** Returns the group in which each run ends after all runs have moved. */
function lastTargets(moves: readonly Move[]): Map<Move, Place> {
  const byGroup = grouped(moves, ({ from }) => from.grp);
  const next = ({ to, waitsFor }: Move): Move | undefined =>
    byGroup.get(to.grp)?.find(({ from, id }) => isBelow(from, waitsFor, id));
  return new Map(
    moves.map((move) => {
      const path = new Set<Move>();
      let last = move;
      for (let at: Move | undefined = move; at !== undefined && !path.has(at); at = next(at)) {
        path.add(at);
        last = at;
      }
      const again = next(last);
      if (again === undefined) return [move, last.to];
      // Runs that are parents of each other move to one of their groups.
      const cycle = [...path].slice([...path].indexOf(again)).map(({ to }) => to);
      return [move, cycle.reduce((a, b) => (a.grp < b.grp ? a : b))];
    }),
  );
}

/**
 * Copies the messages that exist now, and marks them in the earlier group. Other servers may still add messages to the
 * earlier group. ClickHouse deletes the marked messages in the background.
 */
async function moveMessages(
  db: ClickHouse,
  tenant: string,
  pairs: readonly Pair[],
  targets: ReadonlyMap<string, Place>,
  nowUs: () => number,
): Promise<void> {
  const rows = await db.rows<StoredKey>(
    sql(
      `SELECT toString(day) AS day, grp, id, toString(digest) AS digest FROM messages
        WHERE tenant = ? AND (grp, id) IN arrayZip(?, ?) AND kind < ${TOMBSTONE}`,
      string(tenant),
      uuids(pairs.map(({ from }) => from.grp)),
      uuids(pairs.map(({ id }) => id)),
    ),
  );
  for (let at = 0; at < rows.length; at += RUNS_MAX) await copy(db, tenant, rows.slice(at, at + RUNS_MAX), targets);
  const marker = (grp: string, id: string, left: readonly string[]): InsertRow => {
    const receivedUs = nowUs();
    const fields = JSON.stringify({ left, moved_us: receivedUs });
    const day = targets.get(id)?.day;
    return { tenant, day, grp, id, kind: MOVED, received_us: receivedUs, fields, facts: '{}' };
  };
  const moved = [...grouped(rows, ({ grp, id }) => grp + id).values()].flatMap(([first, ...others]) =>
    first === undefined
      ? []
      : [
          marker(
            first.grp,
            first.id,
            [first, ...others].map(({ digest }) => digest),
          ),
        ],
  );
  const arrived = [...new Set(rows.map(({ id }) => id))].map((id) => marker(targets.get(id)?.grp ?? id, id, []));
  await db.insertByDay('messages', [...moved, ...arrived]);
  for (const [day, ofDay] of grouped(rows, (row) => row.day)) {
    for (let at = 0; at < ofDay.length; at += RUNS_MAX) {
      const { sql: where, params } = keysIn(tenant, ofDay.slice(at, at + RUNS_MAX));
      await db.command({
        sql: `DELETE FROM messages IN PARTITION '${day}' WHERE ${where} SETTINGS lightweight_deletes_sync = 0`,
        params,
      });
    }
  }
}

async function copy(
  db: ClickHouse,
  tenant: string,
  rows: readonly StoredKey[],
  targets: ReadonlyMap<string, Place>,
): Promise<void> {
  const ids = [...new Set(rows.map(({ id }) => id))];
  const { sql: where, params } = keysIn(tenant, rows);
  await db.command(
    sql(
      `INSERT INTO messages (tenant, day, grp, id, kind, received_us, fields, facts, inputs, outputs, events)
        SELECT tenant, toDate(?[indexOf(?, id)]), ?[indexOf(?, id)],
          id, kind, received_us, fields, facts, inputs, outputs, events
        FROM messages WHERE ${where}`,
      strings(ids.map((id) => targets.get(id)?.day ?? '')),
      uuids(ids),
      uuids(ids.map((id) => targets.get(id)?.grp ?? '')),
      uuids(ids),
      ...params,
    ),
  );
}

function keysIn(tenant: string, rows: readonly StoredKey[]): Sql {
  return sql(
    'tenant = ? AND (grp, id, digest) IN arrayZip(?, ?, ?)',
    string(tenant),
    uuids(rows.map(({ grp }) => grp)),
    uuids(rows.map(({ id }) => id)),
    { type: 'Array(UInt64)', value: rows.map(({ digest }) => BigInt(digest)) },
  );
}

async function moveFeedback(
  db: ClickHouse,
  tenant: string,
  pairs: readonly Pair[],
  targets: ReadonlyMap<string, Place>,
): Promise<void> {
  const where = sql(
    'tenant = ? AND (grp, run) IN arrayZip(?, ?)',
    string(tenant),
    uuids(pairs.map(({ from }) => from.grp)),
    uuids(pairs.map(({ id }) => id)),
  );
  const found = await db.rows(sql(`SELECT 1 FROM feedback WHERE ${where.sql} LIMIT 1`, ...where.params));
  if (found.length === 0) return;
  const ids = [...new Set(pairs.map(({ id }) => id))];
  await db.command(
    sql(
      `INSERT INTO feedback SELECT * REPLACE (?[indexOf(?, run)] AS grp)
        FROM (SELECT * FROM feedback FINAL WHERE ${where.sql})`,
      uuids(ids.map((id) => targets.get(id)?.grp ?? '')),
      uuids(ids),
      ...where.params,
    ),
  );
  await db.command(sql(`DELETE FROM feedback WHERE ${where.sql}`, ...where.params));
}

/** Marks the rows of moved runs as deleted. */
function rowsOfMoved(tenant: string, pairs: readonly Pair[], nowUs: () => number): InsertRow[] {
  return [...grouped(pairs, ({ from }) => from)].flatMap(([group, members]) =>
    deletedRowsOf(tenant, group, new Set(members.map(({ id }) => id)), nowUs()),
  );
}

function isBelow({ runs, places }: Group, id: string, aboveId: string): boolean {
  const path = new Set<string>();
  for (let at: string | undefined = id; at !== undefined && !path.has(at); ) {
    if (at === aboveId) return true;
    path.add(at);
    const run = runs.get(at);
    if (run === undefined || run.fields.trace_id !== undefined) return false;
    at = places.parentIdOf(run);
  }
  return false;
}
