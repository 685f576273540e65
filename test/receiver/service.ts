import { onTestFinished } from 'vitest';
import { receiverRoutes } from '#src/receiver/all-routes.ts';
import { Access, type AccessRules } from '#src/receiver/http/access/access.ts';
import { StoredKeys } from '#src/receiver/http/access/keyring.ts';
import { TokenSigner } from '#src/receiver/http/access/token-signer.ts';
import { RunLimits } from '#src/receiver/http/run-limits.ts';
import { Faults } from '#src/receiver/http/server/faults.ts';
import { listen } from '#src/receiver/http/server/server.ts';
import { newKey, type StoredKey } from '#src/receiver/store/key-store.ts';
import { loadEngine, SqliteConnection } from '#src/receiver/store/sqlite/file/database.ts';
import { SqliteKeys } from '#src/receiver/store/sqlite/keys.ts';
import type { SqliteStore } from '#src/receiver.ts';
import { openLocalStore, storePath } from './local-store.ts';

/** A receiver with tenants, by default `acme` and `bolt`, as `runspan serve` starts it. */
export interface Service {
  readonly url: string;
  readonly store: SqliteStore;
  readonly keys: SqliteKeys;
  /** Adds a key, and returns its text and id. */
  addKey(fields: Pick<StoredKey, 'tenant' | 'permission'> & Partial<StoredKey>): { text: string; id: string };
}

export async function startService(
  rules: Partial<AccessRules> = {},
  runsPerMinute?: number,
  tenants = ['acme', 'bolt'],
): Promise<Service> {
  const path = storePath();
  const store = await openLocalStore(path);
  // Like `runspan keys`, uses another connection than the receiver.
  const connection = new SqliteConnection(await loadEngine(), path);
  const keys = new SqliteKeys(connection);
  const rulesOfService = { host: '127.0.0.1', keys: new StoredKeys(store, () => tenants), ...rules };
  const access = new Access(rulesOfService, new TokenSigner(store));
  const limits = new RunLimits(() => runsPerMinute);
  const status = () => store.status();
  const service = { access, limits, status, tenants: () => tenants };
  const routes = receiverRoutes({ store, strict: false, faults: new Faults(), ...service });
  const server = await listen(routes, '127.0.0.1', 0);
  onTestFinished(async () => {
    await server.close();
    connection.close();
  });
  return {
    url: server.url,
    store,
    keys,
    addKey: (fields) => {
      const { text, ...key } = newKey();
      keys.addKey({ ...key, createdMs: Date.now(), ...fields });
      return { text, id: key.id };
    },
  };
}
