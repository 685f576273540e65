import { types } from '../platform/node.ts';
import { isHeaders, isPairValue, type SecretNames } from './redaction/names.ts';
import { mayHoldNames, type TextSecrets } from './redaction/text.ts';

/** Limits for one payload or one metadata value. Values beyond a limit are replaced with a marker. */
export interface PayloadLimits {
  readonly depth: number;
  /** Maximum number of items per array or keys per object. */
  readonly width: number;
  /** Maximum number of values, counted across all levels. */
  readonly nodes: number;
  /** Maximum total number of characters in strings and keys. */
  readonly bytes: number;
}

export const KNOWN_KEYS_MAX = 2_000;

export const KNOWN_KEY_CHARACTERS_MAX = 64;

/** Strings up to this length are too short to contain the name and value of a secret. */
export const CHARACTERS_HARMLESS = 8;

/** Maximum length of data URIs in a payload. Longer data URIs become attachments. */
export const DATA_URI_CHARACTERS_MAX = 1_024;

/** Replaces visited objects on the stack, because the stack would keep them in memory. */
const VISITED: object = Object.freeze({});

class KnownKey {
  readonly key: string;
  /** Whether the key's value may need masking or special encoding, or was a getter in the first object with the key. */
  readonly isSpecial: boolean;
  /** The key that followed this key in the most recent object. */
  next: KnownKey | undefined = undefined;
  /** The previous value of `next`, because two keys may alternate after this key. */
  other: KnownKey | undefined = undefined;

  constructor(key: string, isSpecial: boolean) {
    this.key = key;
    this.isSpecial = isSpecial;
  }
}

/**
 * Recognizes plain data that is within the limits and contains no secret. Plain data is encoded with `JSON.stringify`,
 * which reads each property a second time. Other values are copied first, which is slower but always correct. Proxies
 * are never plain data. Looking for a getter at each property would make encoding up to 1.7 times as slow, so a getter
 * is only found if the first object with its key has the getter.
 */
export class PlainCheck {
  readonly names: SecretNames | undefined;
  readonly texts: TextSecrets | undefined;
  readonly #known = new Map<string, KnownKey>();
  readonly #first = new KnownKey('', false);
  /**
   * The stack that the next check reuses. Undefined during a check: if a getter starts another check, that check needs
   * its own stack.
   */
  #spare: object[] | undefined;

  /** If `names` is undefined, nothing is masked. */
  constructor(names?: SecretNames, texts?: TextSecrets) {
    this.names = names;
    this.texts = texts;
  }

  /** Returns the value's JSON text, or undefined if the value must be copied. Throws if a getter throws. */
  jsonOf(value: unknown, limits: PayloadLimits): string | undefined {
    const json = this.unsearchedJsonOf(value, limits);
    return json !== undefined && this.passesSearch(json) ? json : undefined;
  }

  /** Like `jsonOf`, but does not search the text. The caller must pass the text to `passesSearch`. */
  unsearchedJsonOf(value: unknown, limits: PayloadLimits): string | undefined {
    if (typeof value === 'object' && value !== null) {
      if (!this.#isPlain(value, limits)) return undefined;
    } else if (!this.#isPlainItem(value) || limits.nodes < 1) return undefined;
    const json = JSON.stringify(value);
    return json === undefined || json.length > limits.bytes ? undefined : json;
  }

  /** Whether JSON text contains no lone surrogate and no secret in a URL. */
  passesSearch(json: string): boolean {
    return json.indexOf(LONE_SURROGATE) < 0 && this.texts?.hasSecretUrl(json) !== true;
  }

  isSpecial(key: string): boolean {
    return this.#keyOf(key).isSpecial;
  }

  /**
   * Uses a stack, because a recursive call takes longer than checking one object. Goes depth-first, so a cycle soon
   * exceeds the depth limit.
   */
  #isPlain(root: object, { depth, width, nodes, bytes }: PayloadLimits): boolean {
    const objects = this.#spare ?? [];
    this.#spare = undefined;
    objects[0] = root;
    let waiting = 1;
    let level = 0;
    // Similar objects have the same keys in the same order.
    let known = this.#first;
    let nodesLeft = nodes - 1;
    let charactersLeft = bytes;
    while (waiting > 0) {
      const object = objects[waiting - 1] as Record<string, unknown>;
      if (object === VISITED) {
        waiting--;
        level--;
        continue;
      }
      // The second read of a proxy could return other data.
      if (types.isProxy(object)) return false;
      objects[waiting - 1] = VISITED;
      const above = waiting;
      const type = object.constructor;
      let size = 0;
      if (type === Object || (type === undefined && Object.getPrototypeOf(object) === null)) {
        for (const key in object) {
          if (++size > width) return false;
          const value = object[key];
          const next = known.next;
          known = next !== undefined && next.key === key ? next : this.#keyAfter(known, key, object);
          if (known.isSpecial && this.#mayHide(key, value, object)) return false;
          if (typeof value === 'string') {
            charactersLeft -= value.length;
            if (value.length > CHARACTERS_HARMLESS && !this.#isPlainText(value)) return false;
          } else if (typeof value === 'object') {
            if (value === null) continue;
            objects[waiting++] = value;
          } else if (typeof value === 'number') {
            if (value - value !== 0) return false;
          } else if (typeof value !== 'boolean' && value !== undefined) return false;
        }
        // Iterators are not plain data, but may inherit `constructor` from `Object.prototype`.
        if (size === 0 && Object.getPrototypeOf(object) !== Object.prototype) return false;
      } else if (type === Array && Array.isArray(object)) {
        size = object.length;
        if (size > width || size > nodesLeft) return false;
        for (let index = 0; index < size; index++) {
          const value = object[index];
          if (typeof value === 'string') {
            charactersLeft -= value.length;
            if (value.length > CHARACTERS_HARMLESS && !this.#isPlainText(value)) return false;
          } else if (typeof value === 'object') {
            if (value === null) continue;
            objects[waiting++] = value;
          } else if (typeof value === 'number') {
            if (value - value !== 0) return false;
          } else if (typeof value !== 'boolean' && value !== undefined) return false;
        }
        if (size === 2 && this.#mayBeSecretPair(object[0], object[1])) return false;
      } else return false;
      nodesLeft -= size;
      if (nodesLeft < 0 || charactersLeft < 0 || level >= depth) return false;
      if (waiting > above) level++;
      else waiting--;
    }
    this.#spare = objects;
    return true;
  }

  #isPlainItem(value: unknown): boolean {
    if (typeof value === 'string') return value.length <= CHARACTERS_HARMLESS || this.#isPlainText(value);
    return value === null || typeof value === 'boolean' || Number.isFinite(value);
  }

  #isPlainText(text: string): boolean {
    if (mayBeDataUri(text)) return false;
    return this.texts === undefined || !this.texts.mayMask(text);
  }

  /** Whether the value of a special key must be copied for masking or special encoding. */
  #mayHide(key: string, value: unknown, owner: object): boolean {
    if (key === 'toJSON' || mayHoldNames(key) || isGetter(owner, key)) return true;
    if (isHeaders(key) && Array.isArray(value)) return true;
    return this.names?.hides(key, value, owner) === true;
  }

  #mayBeSecretPair(first: unknown, second: unknown): boolean {
    return typeof first === 'string' && this.names?.hidesAfter(first, second) === true;
  }

  #keyAfter(before: KnownKey, key: string, owner: object): KnownKey {
    const { other } = before;
    if (other !== undefined && other.key === key) return other;
    const known = this.#keyOf(key, owner);
    if (key.length > KNOWN_KEY_CHARACTERS_MAX) return known;
    before.other = before.next;
    before.next = known;
    return known;
  }

  #keyOf(key: string, owner: object = {}): KnownKey {
    const found = this.#known.get(key);
    if (found !== undefined) return found;
    const known = new KnownKey(key, this.#examine(key) || isGetter(owner, key));
    if (key.length > KNOWN_KEY_CHARACTERS_MAX) return known;
    if (this.#known.size >= KNOWN_KEYS_MAX) this.#known.clear();
    this.#known.set(key, known);
    return known;
  }

  #examine(key: string): boolean {
    if (key === 'toJSON') return true;
    if (this.names === undefined) return false;
    return isPairValue(key) || isHeaders(key) || mayHoldNames(key) || this.names.kindOf(key) !== undefined;
  }
}

function isGetter(owner: object, key: string): boolean {
  return Object.getOwnPropertyDescriptor(owner, key)?.get !== undefined;
}

export function mayBeDataUri(text: string): boolean {
  return text.length > DATA_URI_CHARACTERS_MAX && text.startsWith('data:');
}

/** The start of the escape sequence that `JSON.stringify` writes for a lone surrogate. */
const LONE_SURROGATE = '\\ud';
