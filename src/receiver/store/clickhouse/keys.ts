import type { Scope } from '../../domain/query/query.ts';
import type { KeyStore, StoredKey } from '../key-store.ts';
import type { RevokedToken, TokenSecret } from '../store.ts';
import { type ClickHouse, type Query, type Sql, sql, string, uuids } from './connection.ts';

export class ClickHouseKeys implements KeyStore {
  readonly #db: ClickHouse;

  constructor(db: ClickHouse) {
    this.#db = db;
  }

  async key(id: string): Promise<StoredKey | undefined> {
    return (await this.#select(sql`id = ${string(id)}`))[0];
  }

  async keys(): Promise<StoredKey[]> {
    const keys = await this.#select(sql('1'));
    return keys.sort((a, b) => a.createdMs - b.createdMs || (a.id < b.id ? -1 : 1));
  }

  async addKey({ usedMs: _, ...key }: StoredKey): Promise<void> {
    const row = { id: key.id, json: JSON.stringify(key), is_revoked: +(key.revokedMs !== undefined) };
    await this.#db.insert('keys', [row]);
  }

  /** Writes the time to a separate table, so that it cannot overwrite a revocation. */
  async useKey(id: string, usedMs: number): Promise<void> {
    await this.#db.insert('key_uses', [{ id, used_ms: usedMs }]);
  }

  async revokeKey(id: string, revokedMs: number): Promise<StoredKey | undefined> {
    const key = await this.key(id);
    if (key === undefined || key.revokedMs !== undefined) return key;
    const revoked = { ...key, revokedMs };
    await this.addKey(revoked);
    return revoked;
  }

  async #select(where: Sql): Promise<StoredKey[]> {
    const rows = await this.#db.rows<{ json: string; used_ms: number }>(
      sql`SELECT json, used_ms FROM (SELECT id, json FROM keys FINAL WHERE ${where}) AS keys
        LEFT JOIN (SELECT id, max(used_ms) AS used_ms FROM key_uses WHERE ${where} GROUP BY id) AS uses USING (id)`,
    );
    return rows.map(({ json, used_ms: usedMs }) => ({ ...JSON.parse(json), ...(usedMs > 0 && { usedMs }) }));
  }
}

export const addTokenSecret: Query<'addTokenSecret'> = async (db, { secret, createdMs }) => {
  await db.insert('token_secrets', [{ secret, created_ms: createdMs }]);
};

export const tokenSecrets: Query<'tokenSecrets'> = (db) =>
  db.rows<TokenSecret>(
    sql('SELECT secret, min(created_ms) AS createdMs FROM token_secrets GROUP BY secret ORDER BY createdMs, secret'),
  );

export const revokeTokens: Query<'revokeTokens'> = async (db, { tenant }, id, revokedMs) => {
  await db.insert('revoked_tokens', [{ tenant, id, revoked_ms: revokedMs }]);
};

export const tokensRevokedMs: Query<'tokensRevokedMs'> = async (db, { tenant }, ids) => {
  const where = sql`tenant = ${string(tenant)} AND id IN (${uuids(ids)})`;
  const [row] = await db.rows<{ ms: number | null }>(
    sql`SELECT maxOrNull(revoked_ms) AS ms FROM revoked_tokens WHERE ${where}`,
  );
  return row?.ms ?? undefined;
};

export async function readRevokedTokens(db: ClickHouse, { tenant }: Scope): Promise<RevokedToken[]> {
  return await db.rows<RevokedToken>(
    sql`SELECT id, max(revoked_ms) AS revokedMs FROM revoked_tokens WHERE tenant = ${string(tenant)} GROUP BY id`,
  );
}
