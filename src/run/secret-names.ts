import { types } from 'node:util';
import { hasPlainPrototype } from './foreign-value.ts';

/**
 * Names whose values are secrets, as words. A key is such a name when it is one of these, or ends with the words of one, however
 * they are joined: `api_key`, `x-api-key`, `openaiApiKey`.
 */
const NAMES: readonly string[] = [
  'authorization',
  'cookie',
  'cookies',
  'credential',
  'credentials',
  'passphrase',
  'passwd',
  'password',
  'secret',
  'secrets',
  'api key',
  'private key',
  'secret key',
  'secret access key',
  'signing key',
  'encryption key',
  'subscription key',
  // Without anything between the words.
  'apikey',
  'privatekey',
  'secretkey',
  'clientsecret',
];

/** Names that other things have too: a piece of a model's text, a count, a conversation. Only text in them is a secret. */
const AMBIGUOUS: readonly string[] = ['token', 'session', 'accesstoken', 'refreshtoken', 'authtoken', 'idtoken'];

/** What comes before `token` when it means a piece of text, or a place in a list of pages. */
const TOKENS_OF_TEXT: ReadonlySet<string> = new Set(
  'bos eos pad unk sep cls mask stop start end special new next previous prev first last per page continuation max min total input output prompt completion'.split(
    ' ',
  ),
);

/** No name is longer; of a longer key the end is looked at. */
const KEY_CHARACTERS_MAX = 128;

/** `always` hides whatever is under the name, `text` what may be a secret there. */
export type NameKind = 'always' | 'text';

/** The names of secrets, those of everybody and some of one's own. */
export class SecretNames {
  readonly #always: readonly string[];
  readonly #ambiguous: readonly string[];
  readonly #likely: RegExp;

  /** Where a model's text comes in pieces, `takesAmbiguous` is false: the pieces are called tokens. */
  constructor(own: readonly string[], takesAmbiguous: boolean) {
    this.#always = [...NAMES, ...own.map((name) => wordsOf(name).join(' '))];
    this.#ambiguous = takesAmbiguous ? AMBIGUOUS : [];
    const last = [...this.#always, ...this.#ambiguous].map((name) => name.slice(name.lastIndexOf(' ') + 1));
    // One look that is over soon for nearly every key.
    this.#likely = new RegExp(`(?:${[...new Set(last)].map(escaped).join('|')})[^\\p{L}\\p{N}]*$`, 'iu');
  }

  kindOf(key: string): NameKind | undefined {
    const end = key.slice(-KEY_CHARACTERS_MAX);
    if (!this.#likely.test(end)) return undefined;
    const words = wordsOf(end);
    const name = ` ${words.join(' ')}`;
    if (this.#always.some((secret) => name.endsWith(` ${secret}`))) return 'always';
    const isTokenOfText = words.at(-1) === 'token' && TOKENS_OF_TEXT.has(words.at(-2) ?? '');
    return !isTokenOfText && this.#ambiguous.includes(words.at(-1) ?? '') ? 'text' : undefined;
  }
}

/**
 * Whether a value under such a name is a secret. What says nothing is none, and neither is the description of a parameter in
 * the schema of a tool, nor a token beside its probability.
 */
export function isSecret(kind: NameKind, value: unknown, owner: object): boolean {
  if (value === undefined || value === null || value === '' || typeof value === 'boolean') return false;
  if (kind === 'always') return !isSchema(value);
  if (typeof value === 'number' || isPlainObject(value)) return false;
  return !Object.hasOwn(owner, 'logprob') && !Object.hasOwn(owner, 'logprobs');
}

const SCHEMA_TYPES: ReadonlySet<unknown> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
  'object',
  'array',
  'null',
]);

/** A JSON Schema, which tells of what kind a value has to be. */
function isSchema(value: unknown): boolean {
  if (!isPlainObject(value)) return false;
  const type = dataIn(value, 'type');
  return SCHEMA_TYPES.has(Array.isArray(type) && !types.isProxy(type) ? dataIn(type, '0') : type);
}

/** What a property holds; a getter is not asked. */
function dataIn(value: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(value, key)?.value;
}

function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !types.isProxy(value) && hasPlainPrototype(value);
}

/** `openaiApiKey`, `OPENAI_API_KEY` and `openai-api-key` are the same three words. */
function wordsOf(name: string): string[] {
  return name
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase());
}

function escaped(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
