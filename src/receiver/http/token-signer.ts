import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FeedbackToken } from '../domain/feedback.ts';
import type { TokenSecret, TokenStore } from '../store/store.ts';

/** Age at which a new secret replaces the latest one, in milliseconds. Tokens with earlier secrets stay valid. */
const ROTATION_MS = 30 * 24 * 3_600_000;
/** Time for which the secrets are cached, in milliseconds. Another receiver may add a secret to the same store. */
const CACHE_MS = 60_000;
const SECRET_BYTES = 32;

/** The fields of a token in the order of their values in the token's text. */
const FIELDS = ['tenant', 'id', 'run_id', 'feedback_key', 'feedback_id', 'created_ms', 'expires_at'] as const;

/**
 * Signs feedback tokens with HMAC-SHA-256. The text of a token contains its fields, so that the receiver does not have
 * to store tokens. The secrets are in the store.
 */
export class TokenSigner {
  readonly #store: TokenStore;
  #cached: { readonly secrets: Promise<TokenSecret[]>; readonly readAtMs: number } | undefined;
  #creating: Promise<TokenSecret> | undefined;

  constructor(store: TokenStore) {
    this.#store = store;
  }

  /** Returns the token's text: its fields, a dot, and the signature. */
  async sign(token: FeedbackToken): Promise<string> {
    const payload = Buffer.from(JSON.stringify(FIELDS.map((field) => token[field]))).toString('base64url');
    return `${payload}.${signatureOf(payload, await this.#latest()).toString('base64url')}`;
  }

  /** Returns the fields of a token, or undefined if no secret has signed the text. */
  async read(text: string): Promise<FeedbackToken | undefined> {
    const [payload = '', signature = ''] = text.split('.', 2);
    const given = Buffer.from(signature, 'base64url');
    const secrets = await this.#secrets();
    const isSigned = secrets.some((secret) => {
      const expected = signatureOf(payload, secret);
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    if (!isSigned) return undefined;
    const values: unknown[] = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return Object.fromEntries(FIELDS.map((field, at) => [field, values[at]])) as unknown as FeedbackToken;
  }

  async #latest(): Promise<TokenSecret> {
    const latest = (await this.#secrets()).at(-1);
    if (latest !== undefined && Date.now() - latest.createdMs < ROTATION_MS) return latest;
    this.#creating ??= this.#create().finally(() => {
      this.#cached = undefined;
      this.#creating = undefined;
    });
    return this.#creating;
  }

  async #create(): Promise<TokenSecret> {
    const created = { secret: randomBytes(SECRET_BYTES).toString('base64url'), createdMs: Date.now() };
    await this.#store.addTokenSecret(created);
    return created;
  }

  #secrets(): Promise<TokenSecret[]> {
    if (this.#cached !== undefined && Date.now() - this.#cached.readAtMs < CACHE_MS) return this.#cached.secrets;
    const secrets = this.#store.tokenSecrets();
    this.#cached = { secrets, readAtMs: Date.now() };
    secrets.catch(() => {
      this.#cached = undefined;
    });
    return secrets;
  }
}

function signatureOf(payload: string, { secret }: TokenSecret): Buffer {
  return createHmac('sha256', secret).update(payload).digest();
}
