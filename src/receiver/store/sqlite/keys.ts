import type { StoredKey } from '../key-store.ts';
import type { Row, SqliteConnection, SqlValue } from './file/database.ts';

const SELECT_KEYS = `SELECT id, hash, tenant, project, permission, name, created_ms AS createdMs, used_ms AS usedMs,
  revoked_ms AS revokedMs FROM keys`;

export class SqliteKeys {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  key(id: string): StoredKey | undefined {
    return this.#select('WHERE id = ?', id)[0];
  }

  /** Returns all keys, oldest first. */
  keys(): StoredKey[] {
    return this.#select('ORDER BY created_ms, id');
  }

  addKey({ id, hash, tenant, project, permission, name, createdMs }: StoredKey): void {
    const values: SqlValue[] = [id, hash, tenant, project ?? null, permission, name ?? null, createdMs];
    this.#connection.run('INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL)', ...values);
  }

  useKey(id: string, usedMs: number): void {
    this.#connection.run('UPDATE keys SET used_ms = ? WHERE id = ?', usedMs, id);
  }

  revokeKey(id: string, revokedMs: number): StoredKey | undefined {
    this.#connection.run('UPDATE keys SET revoked_ms = coalesce(revoked_ms, ?) WHERE id = ?', revokedMs, id);
    return this.key(id);
  }

  #select(clause: string, ...values: SqlValue[]): StoredKey[] {
    return this.#connection.all<Row>(`${SELECT_KEYS} ${clause}`, ...values).map((row) => {
      const given = Object.entries(row).filter(([, value]) => value !== null);
      return Object.fromEntries(given) as unknown as StoredKey;
    });
  }
}
