import type { Permission, StoredKey } from '../key-store.ts';
import type { SqliteConnection, SqlValue } from './database.ts';

/** Adds the table to files that an earlier version created. */
export const KEYS_TABLE = `CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT,
    permission TEXT NOT NULL,
    name TEXT,
    created_ms INTEGER NOT NULL,
    used_ms INTEGER,
    revoked_ms INTEGER
  ) WITHOUT ROWID`;

interface KeyRow {
  readonly id: string;
  readonly hash: string;
  readonly tenant: string;
  readonly project: string | null;
  readonly permission: Permission;
  readonly name: string | null;
  readonly created_ms: number;
  readonly used_ms: number | null;
  readonly revoked_ms: number | null;
}

/** Reads and changes the keys in a store file. */
export class SqliteKeys {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  key(id: string): StoredKey | undefined {
    const row = this.#connection.one<KeyRow>('SELECT * FROM keys WHERE id = ?', id);
    return row && keyOf(row);
  }

  /** Returns all keys, oldest first. */
  keys(): StoredKey[] {
    return this.#connection.all<KeyRow>('SELECT * FROM keys ORDER BY created_ms, id').map(keyOf);
  }

  addKey({ id, hash, tenant, project, permission, name, createdMs }: StoredKey): void {
    const values: SqlValue[] = [id, hash, tenant, project ?? null, permission, name ?? null, createdMs];
    this.#connection.run('INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL)', ...values);
  }

  useKey(id: string, usedMs: number): void {
    this.#connection.run('UPDATE keys SET used_ms = ? WHERE id = ?', usedMs, id);
  }

  /** Revokes a key. Returns the revoked key, or undefined if there is no such key. */
  revokeKey(id: string, revokedMs: number): StoredKey | undefined {
    this.#connection.run('UPDATE keys SET revoked_ms = coalesce(revoked_ms, ?) WHERE id = ?', revokedMs, id);
    return this.key(id);
  }
}

function keyOf(row: KeyRow): StoredKey {
  const { id, hash, tenant, project, permission, name, created_ms: createdMs } = row;
  return {
    id,
    hash,
    tenant,
    permission,
    createdMs,
    ...(project !== null && { project }),
    ...(name !== null && { name }),
    ...(row.used_ms !== null && { usedMs: row.used_ms }),
    ...(row.revoked_ms !== null && { revokedMs: row.revoked_ms }),
  };
}
