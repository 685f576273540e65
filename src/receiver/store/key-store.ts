import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** The scopes of a key. `metrics` allows only `GET /metrics`. */
export const PERMISSIONS = ['write', 'read', 'admin', 'metrics'] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** A key as a store keeps it. The store does not know the key's secret. */
export interface StoredKey {
  readonly id: string;
  /** SHA-256 of the secret in hexadecimal digits. */
  readonly hash: string;
  readonly tenant: string;
  /** Name of the only project that the key may use. */
  readonly project?: string;
  readonly permission: Permission;
  readonly name?: string;
  readonly createdMs: number;
  /** Time of the latest use, at most a minute late. */
  readonly usedMs?: number;
  readonly revokedMs?: number;
}

/** Stores keys. Keys are created and revoked by the command `runspan keys`, possibly in another process. */
export interface KeyStore {
  key(id: string): Promise<StoredKey | undefined>;
  useKey(id: string, usedMs: number): Promise<void>;
}

const ID_BYTES = 6;
const SECRET_BYTES = 32;
const KEY = /^rsk_([0-9a-f]{12})_([\w-]{43})$/;

/** Creates a random key. `text` is the key that a client sends: a public id and a secret of 256 bits. */
export function newKey(): { readonly id: string; readonly hash: string; readonly text: string } {
  const id = randomBytes(ID_BYTES).toString('hex');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  return { id, hash: digest(secret).toString('hex'), text: `rsk_${id}_${secret}` };
}

export function keyIdOf(text: string): string | undefined {
  return KEY.exec(text)?.[1];
}

/** Returns whether a key contains the secret of a stored key. Compares in constant time. */
export function isStoredKey(text: string, { hash }: StoredKey): boolean {
  const secret = KEY.exec(text)?.[2];
  return secret !== undefined && timingSafeEqual(digest(secret), Buffer.from(hash, 'hex'));
}

function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
