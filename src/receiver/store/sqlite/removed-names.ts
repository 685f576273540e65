import { randomBytes } from 'node:crypto';
import { idBytes, type SqliteConnection } from './file/database.ts';

/**
 * Why a trace is in the table `hidden`: by request, to stay within the limits, or because a key that is limited to a project
 * has deleted all its runs. Only messages for a trace that was deleted by request are ignored.
 */
export const HiddenKind: Readonly<Record<'REQUESTED' | 'EVICTED' | 'RUNS', number>> = {
  REQUESTED: 0,
  EVICTED: 1,
  RUNS: 2,
};

/**
 * What a name in the table `removed` was: the id of a run in a deleted trace, a name of a deleted trace, the id of a deleted
 * trace without a `trace_id`, and the id of a run that was deleted alone.
 */
export const NameKind: Readonly<Record<'OF_TRACE' | 'NAMED' | 'UNNAMED' | 'RUN', number>> = {
  OF_TRACE: 1,
  NAMED: 2,
  UNNAMED: 3,
  RUN: 4,
};

export function keepName(connection: SqliteConnection, tenant: number, id: string, kind: number): void {
  connection.run(KEEP_NAME, tenant, idBytes(id), kind);
}

/** Keeps the names of a trace, except the ids of its runs. */
export function keepTraceNames(connection: SqliteConnection, trace: number): void {
  connection.run(KEEP_TRACE_NAMES, trace, trace);
}

/** Keeps the ids of runs that are deleted, so that later messages for them are ignored. */
export function keepNames(connection: SqliteConnection, runs: readonly { readonly n: number }[], kind: number): void {
  connection.run(KEEP_RUNS, kind, JSON.stringify(runs.map(({ n }) => n)));
  limitNames(connection);
}

/** Forgets the earliest names above 2,000,000. */
export function limitNames(connection: SqliteConnection): void {
  connection.run('DELETE FROM removed WHERE n <= (SELECT max(n) FROM removed) - 2000000');
}

export function forgetNames(connection: SqliteConnection, trace: number): void {
  connection.run('DELETE FROM trace_names WHERE trace = ?', trace);
}

/** Takes the names from a hidden trace, so that the next message with one of them creates a new trace. */
export function freeNames(connection: SqliteConnection, trace: number): void {
  forgetNames(connection, trace);
  connection.run('UPDATE traces SET id = ? WHERE n = ?', randomBytes(16), trace);
}

const KEEP_NAME = 'INSERT OR IGNORE INTO removed (tenant, id, kind) VALUES (?, ?, ?)';
const KEEP_RUNS = `INSERT OR IGNORE INTO removed (tenant, id, kind)
  SELECT tenant, id, ? FROM runs WHERE n IN (SELECT value FROM json_each(?))`;
const KEEP_TRACE_NAMES = `INSERT OR IGNORE INTO removed (tenant, id, kind)
  SELECT tenant, id, iif(is_named, ${NameKind.NAMED}, ${NameKind.UNNAMED}) FROM traces WHERE n = ?
  UNION ALL SELECT tenant, id, ${NameKind.NAMED} FROM trace_names WHERE trace = ?`;
