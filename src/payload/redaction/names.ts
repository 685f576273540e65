import { latePattern } from '../../base/late-pattern.ts';
import { detached } from '../../base/text.ts';
import { types } from '../../platform/node.ts';
import { ExactNumber, type Fields, isPlainObject } from '../fields.ts';

/**
 * The kind of a secret's name decides which of its values are hidden:
 *
 * - `always` hides every value except a JSON Schema.
 * - `word` hides numbers from 1000, and text that is not prose.
 * - `look` hides text that looks like a credential, not like words or part of a word.
 */
export type NameKind = 'always' | 'word' | 'look';

/**
 * Names of secrets, split into words. A key matches if it ends with the words of a name. Case and separators are
 * ignored: `x-api-key`, `openaiApiKey` and `api_key_2` all match `api key`. If several names match a key, the longest
 * name determines the kind. The names under `none` only end like the name of a secret.
 */
const NAMES: Readonly<Record<NameKind | 'none', string>> = {
  always: `authorization, credential, credentials, creds, passphrase, passcode, passwd, password, passwords,
    password confirmation, password confirm, api key, api keys, private key,
    secret key, secret access key, access key, access key id, account key, signing key, encryption key, subscription key,
    master key, auth key, password hash, password digest, connection string, jwt, csrf, xsrf, otp, cvv, cvc,
    apikey, apikeys, privatekey, secretkey, accountkey, clientsecret, passwordhash, connectionstring,
    access token, api token, app token, auth token, bearer token, bot token, csrf token, deploy token, device token, id token,
    jwt token, login token, oauth token, private token, refresh token, reset token, sas token, secret token, security token,
    service token, session token, vault token, verification token, web token, xsrf token, bearer,
    access tokens, api tokens, auth tokens, refresh tokens,
    accesstoken, apitoken, authtoken, idtoken, refreshtoken, sessiontoken`,
  word: 'secret, secrets, pass, pwd, pw',
  look: 'trade secret, trade secrets, token, session, cookie, cookies, auth, signature',
  none: 'thought signature, first pass, second pass, third pass, final pass',
};

/** Words before `token` that make a key harmless, as in `stop_token` and `nextPageToken`. */
const TOKENS_OF_TEXT =
  `bos eos pad unk sep cls mask stop start end special new next previous prev first last per page continuation max min total
  input output prompt completion predicted sampled top best chosen target current image audio video text`.split(/\s+/);

/** Only the exact key `tokens` matches, because longer keys such as `max_tokens` hold counts. */
const TOKENS = 'tokens';

/**
 * Names that are secrets only as URL parameters. The parameter's value is hidden unless the value is short or looks
 * like a word.
 */
export const URL_NAMES: ReadonlySet<string> = new Set(['key', 'sig']);

/** Maximum number of characters examined at the end of a key. */
const KEY_CHARACTERS_MAX = 128;

const CACHED_MAX = 2_000;

const CACHED_CHARACTERS_MAX = 64;

export class SecretNames {
  readonly #kinds = new Map<string, NameKind | 'none'>();
  readonly #likely: () => RegExp;
  /** The cached kind of each key, or null if the key does not name a secret. */
  readonly #known = new Map<string, NameKind | null>();
  readonly lastWords: readonly string[];

  /**
   * `own` contains the names that the application adds. If `takesPieces` is false, `token` is left out, because in
   * chunks of model output this key holds a piece of text.
   */
  constructor(own: readonly string[], takesPieces: boolean) {
    for (const [kind, names] of Object.entries(NAMES) as [NameKind | 'none', string][]) {
      for (const name of names.split(/,\s+/)) this.#kinds.set(name, kind);
    }
    if (!takesPieces) this.#kinds.delete('token');
    for (const word of TOKENS_OF_TEXT) this.#kinds.set(`${word} token`, 'none');
    if (takesPieces) this.#kinds.set(TOKENS, 'look');
    for (const name of own) this.#kinds.set(nameWords(name).join(' '), 'always');
    this.lastWords = [...new Set([...this.#kinds.keys()].map((name) => name.slice(name.lastIndexOf(' ') + 1)))];
    // The pattern quickly rejects most keys. Words contain only letters and digits, so no escapes are needed.
    this.#likely = latePattern(`(?:${this.lastWords.join('|')})[^\\p{L}]{0,16}$`, 'iu');
  }

  kindOf(key: string): NameKind | undefined {
    const known = this.#known.get(key);
    if (known !== undefined) return known === null ? undefined : known;
    const kind = this.#find(key);
    if (key.length > CACHED_CHARACTERS_MAX) return kind;
    if (this.#known.size >= CACHED_MAX) this.#known.clear();
    this.#known.set(detached(key), kind ?? null);
    return kind;
  }

  #find(key: string): NameKind | undefined {
    const end = key.slice(-KEY_CHARACTERS_MAX);
    if (!this.#likely().test(end)) return undefined;
    const kind = this.#kindOfWords(nameWords(end)) ?? this.#kindOfWords(nameWords(end.replace(numberAtEnd(), '')));
    return kind === 'none' ? undefined : kind;
  }

  hides(key: string, value: unknown, owner: object): boolean {
    const kind = this.kindOf(key);
    if (kind !== undefined) return isSecret(kind, key, value, owner);
    return isPairValue(key) && this.hidesInPair(key, value, owner);
  }

  hidesInPair(key: string, value: unknown, owner: object): boolean {
    const [name, otherName] = key === 'value' ? ['name', 'key'] : ['Name', 'Key'];
    return this.hidesAfter(dataIn(owner, name) ?? dataIn(owner, otherName), value);
  }

  /** Whether a value in a list is a secret because of the name before the value. */
  hidesAfter(name: unknown, value: unknown): boolean {
    const kind = typeof name === 'string' ? this.kindOf(name) : undefined;
    return kind !== undefined && isSecret(kind, name as string, value, {});
  }

  /**
   * Whether a list alternates between names and values, like a `[name, value]` pair or a flat list such as
   * `rawHeaders`.
   */
  isNamedList(length: number, parent: unknown, key: unknown): boolean {
    if (length === 2 && Array.isArray(parent)) return true;
    return length % 2 === 0 && typeof key === 'string' && isHeaders(key);
  }

  mayHideInUrl(name: string): boolean {
    return this.kindOf(name) !== undefined || (name.length === 3 && URL_NAMES.has(name.toLowerCase()));
  }

  hidesInUrl(name: string, value: string): boolean {
    const kind = this.kindOf(name);
    if (kind === undefined) return URL_NAMES.has(name.toLowerCase()) && value.length > 5 && !isPiece(value);
    if (value === '' || value === 'true' || value === 'false') return false;
    return kind === 'always' || !/^\d{1,5}$/.test(value);
  }

  #kindOfWords(words: readonly string[]): NameKind | 'none' | undefined {
    for (let from = 0; from < words.length; from++) {
      const name = words.slice(from).join(' ');
      const kind = name === TOKENS && from > 0 ? undefined : this.#kinds.get(name);
      if (kind !== undefined) return kind;
    }
    return undefined;
  }
}

/** Whether a key may hold the `value` of a pair such as `{ name, value }`. */
export function isPairValue(key: string): boolean {
  return key === 'value' || key === 'Value';
}

/** Whether a key may hold a list of alternating header names and values, for example `rawHeaders`. */
export function isHeaders(key: string): boolean {
  return /headers$/i.test(key);
}

/** Maximum number of values examined below one key. Objects and lists with more values are hidden. */
const NESTED_MAX = 100;

/**
 * Whether a key's value is a secret. Not secrets: empty values, booleans, JSON Schemas, tokens with a log probability,
 * and signatures of model thinking.
 */
function isSecret(kind: NameKind, key: string, value: unknown, owner: object): boolean {
  if (value === undefined || value === null || value === '' || typeof value === 'boolean') return false;
  if (isSchema(value)) return false;
  if (kind === 'always') return true;
  if (Object.hasOwn(owner, 'logprob') || Object.hasOwn(owner, 'logprobs')) return false;
  const isOfThinking = Object.hasOwn(owner, 'thinking') || THINKING.has(dataIn(owner, 'type'));
  if (isOfThinking && isSignature(key)) return false;
  return holdsSecret(kind, key, value, { left: NESTED_MAX });
}

/** The types of thinking, or of its signature, in streams of Anthropic and in Gemini's Interactions API. */
const THINKING: ReadonlySet<unknown> = new Set(['signature_delta', 'thought', 'thought_signature']);

function holdsSecret(kind: NameKind, key: string, value: unknown, count: { left: number }): boolean {
  if (--count.left < 0) return true;
  if (typeof value === 'string') return isSecretText(kind, key, value);
  if (typeof value === 'number' || value instanceof ExactNumber) return kind === 'word' && Number(value) >= 1_000;
  if (typeof value !== 'object' || value === null) return false;
  if (isPlainData(value)) {
    // Under other keys, for example `session`, each property is checked by its own name.
    if (!/(?:cookies?|secrets?|tokens)\d*$/i.test(key)) return false;
  } else if (!Array.isArray(value) || types.isProxy(value)) return true;
  const items = Object.keys(value).map((inner) => dataIn(value, inner));
  // A list named `tokens` usually contains short pieces of model output.
  if (Array.isArray(value) && key.toLowerCase() === TOKENS) {
    return items.some((item) => typeof item === 'string' && item.length > 24);
  }
  return items.some((item) => holdsSecret(kind, key, item, count));
}

function isSecretText(kind: NameKind, key: string, text: string): boolean {
  if (isPlainText(text)) return kind === 'word' && !/\S\s+\S|^(?:yes|no|ok)$/i.test(text);
  // The signature of a function, or of a letter, contains spaces or parentheses.
  if (isSignature(key)) return /^[^\s()]{6,}$/.test(text);
  // The environment variable `PWD` contains the working directory, not a password.
  return !(/pwd$/i.test(key) && /^(?:~?\/|[A-Za-z]:\\)/.test(text));
}

function isSignature(key: string): boolean {
  return /signature[^a-z]{0,16}$/i.test(key);
}

const SCHEMA_TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

/** Whether a value is a JSON Schema. A schema may describe a secret but contains none. */
function isSchema(value: unknown): boolean {
  if (!isPlainData(value)) return false;
  const type = dataIn(value, 'type');
  return SCHEMA_TYPES.includes(Array.isArray(type) && !types.isProxy(type) ? dataIn(type, '0') : type);
}

/** Reads a property without calling a getter. */
function dataIn(value: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(value, key)?.value;
}

/** Reading the prototype of a proxy would call the application's code. */
function isPlainData(value: unknown): value is Fields {
  return !types.isProxy(value) && isPlainObject(value);
}

/** Splits a name into words. `openaiApiKey` and `OPENAI_API_KEY` have the same words. */
export function nameWords(name: string): string[] {
  return name
    .replace(smallThenCapital(), '$1 $2')
    .replace(capitalThenWord(), '$1 $2')
    .split(betweenWords())
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase());
}

const smallThenCapital = latePattern(String.raw`(\p{Ll}|\p{N})(\p{Lu})`, 'gu');
const capitalThenWord = latePattern(String.raw`(\p{Lu})(\p{Lu}\p{Ll})`, 'gu');
const betweenWords = latePattern(String.raw`[^\p{L}\p{N}]+`, 'u');

/** Matches the number at the end of `password1` or `password_1`. */
const numberAtEnd = latePattern(String.raw`[^\p{L}]{1,16}$`, 'u');

/** Matches a piece of model output: a word, part of a word, a short number, a date or a marker such as `<image>`. */
const piece = latePattern(
  String.raw`^[^\p{L}\p{N}]{0,8}(?:Ġ?\p{Lu}?[\p{Ll}\p{Lo}\p{M}]{0,20}(?:\p{Lu}\p{Ll}{2,16}|['’]\p{Ll}{1,2}|-\p{Ll}{2,16})?|\p{Lu}{1,12}|\d{1,4}|\d{4}-\d\d-\d\d)[^\p{L}\p{N}]{0,8}$|^<[\w|/ ]{1,40}>$|^\[[A-Z_\d]{1,16}\]$`,
  'u',
);

/** Matches a word, a number or a date in prose. */
const proseWord = latePattern(
  String.raw`^[^\p{L}\p{N}]{0,8}(?:\p{L}[\p{L}\p{M}'’./-]{0,24}|[\d.,:/%-]{1,16}\p{L}{0,2})?[^\p{L}\p{N}]{0,8}$`,
  'u',
);

/** Matches an authentication scheme, the word before the credential in a header. */
const SCHEME = /^(?:api-?key|basic|bearer|digest|negotiate|token)$/i;

const CHARACTERS_MAX = 10_000;

/** Whether a string without spaces looks like a word or part of a word, not like a credential. */
export function isPiece(text: string): boolean {
  // Every credential contains ASCII letters or digits.
  return !/[A-Za-z\d]/.test(text) || (text.length <= 50 && piece().test(text));
}

/** Whether a text looks like words, not like a credential. */
export function isPlainText(text: string): boolean {
  const words = text.slice(0, CHARACTERS_MAX).trim().split(/\s+/);
  if (words.length === 1) return isPiece(text);
  if (words.length === 2 && SCHEME.test(words[0] as string)) return false;
  return words.every((word) => !/[A-Za-z\d]/.test(word) || (word.length <= 50 && proseWord().test(word)));
}
