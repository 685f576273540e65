import { idBytes, type SqliteConnection } from './file/database.ts';

/**
 * What a name in the table `removed` was: the id of a run without a `trace_id` in a deleted trace, a name of a deleted
 * trace, the id of a deleted trace without a `trace_id`, and the id of a run that was deleted from a trace that stays.
 */
export const NameKind: Readonly<Record<'UNNAMED_RUN' | 'NAMED' | 'UNNAMED' | 'RUN', number>> = {
  UNNAMED_RUN: 1,
  NAMED: 2,
  UNNAMED: 3,
  RUN: 4,
};

export function keepName(connection: SqliteConnection, tenant: number, id: string, kind: number): void {
  connection.run(KEEP_NAME, tenant, idBytes(id), kind);
}

/** Keeps the ids of runs that are deleted, so that later messages for them are ignored. */
export function keepNames(connection: SqliteConnection, runs: readonly { readonly n: number }[], kind: number): void {
  connection.run(KEEP_RUNS, kind, JSON.stringify(runs.map(({ n }) => n)), kind);
  limitNames(connection);
}

/** Forgets the earliest names above 2,000,000. */
export function limitNames(connection: SqliteConnection): void {
  connection.run('DELETE FROM removed WHERE n <= (SELECT max(n) FROM removed) - 2000000');
}

const KEEP_NAME = 'INSERT OR IGNORE INTO removed (tenant, id, kind) VALUES (?, ?, ?)';
const KEEP_RUNS = `INSERT OR IGNORE INTO removed (tenant, id, kind)
  SELECT tenant, id, ? FROM runs WHERE n IN (SELECT value FROM json_each(?)) AND (is_named = 0 OR ? = ${NameKind.RUN})`;
/** Keeps the names of a trace, except the ids of its runs. */
export const KEEP_TRACE_NAMES: string = `INSERT OR IGNORE INTO removed (tenant, id, kind)
  SELECT tenant, id, iif(is_named, ${NameKind.NAMED}, ${NameKind.UNNAMED}) FROM traces WHERE n = ?
  UNION ALL SELECT tenant, id, ${NameKind.NAMED} FROM trace_names WHERE trace = ?`;
