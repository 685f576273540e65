import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Scope } from '../../domain/query/query.ts';
import type { TokenSecret, TokenStore } from '../../store/store.ts';
import { ReadCache } from '../read-cache.ts';

/** Age at which a new secret replaces the latest one, in milliseconds. Tokens with earlier secrets stay valid. */
const ROTATION_MS = 30 * 24 * 3_600_000;
const CACHE_MS = 60_000;
/** Age of the secrets at which an unknown signature reads them again. Another receiver may have added one. */
const RECHECK_MS = 1_000;
const SECRET_BYTES = 32;

/**
 * Signs tokens with HMAC-SHA-256. The text of a token contains its values, so that no receiver has to store it, and each
 * receiver of a store accepts it. The secrets are in the store.
 */
export class TokenSigner {
  readonly #store: TokenStore;
  readonly #cache = new ReadCache<TokenSecret[]>();
  #creating: Promise<TokenSecret> | undefined;
  readonly #revoked = new ReadCache<boolean>();

  constructor(store: TokenStore) {
    this.#store = store;
  }

  /** Returns the values and the signature of a token, which is valid only for this purpose. */
  async sign(values: readonly unknown[], purpose = ''): Promise<string> {
    const payload = Buffer.from(JSON.stringify(values)).toString('base64url');
    return `${payload}.${signatureOf(payload, purpose, await this.#latest()).toString('base64url')}`;
  }

  /** Returns the values of a token, or undefined if no secret has signed the text for this purpose. */
  async read(text: string, purpose = ''): Promise<unknown[] | undefined> {
    const [payload = '', signature = ''] = text.split('.', 2);
    if (!/^[\w-]+$/.test(payload)) return undefined;
    const given = Buffer.from(signature, 'base64url');
    const isSigned = (secrets: readonly TokenSecret[]): boolean =>
      secrets.some((secret) => {
        const expected = signatureOf(payload, purpose, secret);
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
    if (!isSigned(await this.#secrets()) && !isSigned(await this.#secrets(RECHECK_MS))) return undefined;
    return JSON.parse(Buffer.from(payload, 'base64url').toString());
  }

  /** Revokes the tokens with this id. The other receivers of the store accept them for up to a second. */
  async revoke(scope: Scope, id: string): Promise<void> {
    await this.#store.revokeTokens(scope, id, Date.now());
    this.#revoked.delete(id);
  }

  isRevoked(scope: Scope, id: string): Promise<boolean> {
    return this.#revoked.read(id, async () => (await this.#store.tokensRevokedMs(scope, [id])) !== undefined);
  }

  async #latest(): Promise<TokenSecret> {
    const latest = (await this.#secrets()).at(-1);
    if (latest !== undefined && Date.now() - latest.createdMs < ROTATION_MS) return latest;
    this.#creating ??= this.#create(latest).finally(() => {
      this.#cache.delete('secrets');
      this.#creating = undefined;
    });
    return this.#creating;
  }

  /** Creates a secret. If the store cannot write, returns the earlier one, so that users can log in. */
  async #create(earlier: TokenSecret | undefined): Promise<TokenSecret> {
    const created = { secret: randomBytes(SECRET_BYTES).toString('base64url'), createdMs: Date.now() };
    try {
      await this.#store.addTokenSecret(created);
      return created;
    } catch (error) {
      if (earlier === undefined) throw error;
      return earlier;
    }
  }

  #secrets(ageMaxMs: number = CACHE_MS): Promise<TokenSecret[]> {
    return this.#cache.read('secrets', () => this.#store.tokenSecrets(), ageMaxMs);
  }
}

function signatureOf(payload: string, purpose: string, { secret }: TokenSecret): Buffer {
  // The payload contains no space, so the text has only one payload and one purpose.
  return createHmac('sha256', secret)
    .update(purpose === '' ? payload : `${payload} ${purpose}`)
    .digest();
}
