import { createHash, timingSafeEqual } from 'node:crypto';
import { diagnostics } from '../../../base/diagnostics.ts';
import { messageOf } from '../../../base/text.ts';
import type { Scope } from '../../domain/query/query.ts';
import { isStoredKey, type KeyStore, keyIdOf, type Permission, type StoredKey } from '../../store/key-store.ts';
import { DEFAULT_SCOPE } from '../../store/store.ts';
import { ReadCache } from '../read-cache.ts';

export interface Grant {
  /** Id of the key. Login sessions contain the id, so that they end when the key is revoked. */
  readonly id: string;
  /** The key itself, if another key can have the same id. The signatures of login sessions then cover it. */
  readonly key?: string;
  readonly scope: Scope;
  readonly permission: Permission;
  /** Records the use of a key that was found by its id, when a session has proved it. */
  readonly used?: () => void;
}

export interface Keyring {
  /**
   * Returns the grant of a key, or undefined if the key is wrong. `workspaceId` is the header `x-tenant-id`, which
   * selects one of several tenants of a key.
   */
  find(key: string, workspaceId?: string): Promise<Grant | undefined>;
  /** Returns the grant of the key with this id, or undefined if the key has been revoked. */
  byId(id: string): Promise<Grant | undefined>;
  isTenant(name: string): boolean;
  readonly isShared: boolean;
  /** The keys that a user can log in with, for error messages. */
  readonly loginKeys: string;
  /** Whether users choose the keys. If so, the receiver limits the number of wrong keys. */
  readonly isGuessable: boolean;
}

/** What a request may do if the receiver requires no key. */
export const FULL_GRANT: Grant = { id: 'key', scope: DEFAULT_SCOPE, permission: 'admin' };

const WRITE_GRANT: Grant = { id: 'write key', scope: DEFAULT_SCOPE, permission: 'write' };

/** The keys in the options of a receiver: one key for everything, and one key for writing. */
export class FixedKeys implements Keyring {
  readonly loginKeys = 'the key in RUNSPAN_RECEIVER_KEY or `apiKey`';
  readonly isGuessable = true;
  readonly isShared = false;
  readonly #apiKey: string;
  readonly #full: Grant;
  readonly #writeKey: string | undefined;

  constructor(apiKey: string, writeKey: string | undefined) {
    this.#apiKey = apiKey;
    this.#full = { ...FULL_GRANT, key: apiKey };
    this.#writeKey = writeKey;
  }

  async find(key: string): Promise<Grant | undefined> {
    if (isSame(key, this.#apiKey)) return this.#full;
    return this.#writeKey !== undefined && isSame(key, this.#writeKey) ? WRITE_GRANT : undefined;
  }

  async byId(id: string): Promise<Grant | undefined> {
    return [this.#full, WRITE_GRANT].find((grant) => grant.id === id);
  }

  isTenant(name: string): boolean {
    return name === DEFAULT_SCOPE.tenant;
  }
}

/** Minimum interval between writes of a key's latest use, in milliseconds. */
const USE_INTERVAL_MS = 60_000;

/** The keys in a store. Only keys of the given tenants are accepted. */
export class StoredKeys implements Keyring {
  readonly loginKeys = 'a read key';
  readonly isGuessable = false;
  readonly #store: KeyStore;
  readonly #tenants: () => readonly string[];
  /** A revoked key is accepted until it is read again. */
  readonly #cache = new ReadCache<StoredKey | undefined>();
  readonly #usedMs = new Map<string, number>();

  constructor(store: KeyStore, tenants: () => readonly string[]) {
    this.#store = store;
    this.#tenants = tenants;
  }

  async find(text: string): Promise<Grant | undefined> {
    const key = await this.#read(keyIdOf(text));
    const grant = key !== undefined && isStoredKey(text, key) ? this.#grantOf(key) : undefined;
    grant?.used?.();
    return grant;
  }

  async byId(id: string): Promise<Grant | undefined> {
    const key = await this.#read(id);
    return key && this.#grantOf(key);
  }

  isTenant(name: string): boolean {
    return this.#tenants().includes(name);
  }

  get isShared(): boolean {
    return this.#tenants().length > 1;
  }

  async #read(id: string | undefined): Promise<StoredKey | undefined> {
    if (id === undefined) return undefined;
    return this.#cache.read(id, (expired) =>
      this.#store.key(id).catch(async (error) => {
        const last = await expired;
        // Metrics are needed while the store fails, and contain no runs.
        if (last?.permission === 'metrics') return last;
        throw error;
      }),
    );
  }

  #grantOf({ id, tenant, project, permission, revokedMs }: StoredKey): Grant | undefined {
    if (revokedMs !== undefined || !this.isTenant(tenant)) return undefined;
    const scope = { tenant, ...(project !== undefined && { project }) };
    return { id, permission, scope, used: () => this.#use(id) };
  }

  #use(id: string): void {
    const nowMs = Date.now();
    if (nowMs - (this.#usedMs.get(id) ?? 0) < USE_INTERVAL_MS) return;
    this.#usedMs.set(id, nowMs);
    this.#store
      .useKey(id, nowMs)
      .catch((error) => diagnostics.warn(`the last use of the key ${id} was not stored: ${messageOf(error)}`));
  }
}

/** Compares two strings in constant time. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
