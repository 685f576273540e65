import { isHeaders, isPairValue, type SecretNames } from './secret-names.ts';
import { mayHoldNames, type TextSecrets } from './text-secrets.ts';

/** Limits of one payload: `inputs`, `outputs`, the data of an event, or one metadata value. Markers replace values beyond a limit. */
export interface PayloadLimits {
  /** Levels of nesting. */
  readonly depth: number;
  /** Items of one array, or keys of one object. */
  readonly width: number;
  /** Number of values. */
  readonly nodes: number;
  /** Characters of all text and keys. */
  readonly bytes: number;
}

/** Payloads have few keys, except objects that are indexed by ids. */
const KEYS_KEPT = 2_000;
const KEY_CHARACTERS_KEPT = 64;

/** A text of up to this many characters cannot hold the name of a secret and its value. */
const CHARACTERS_HARMLESS = 8;

/** A shorter data URI stays in its payload. */
const DATA_URI_CHARACTERS_MIN = 1_024;

/** Replaces a visited object, which must not be kept in memory. Stays on the stack until the children have been visited. */
const VISITED: object = Object.freeze({});

/** A key that has been examined. */
class KnownKey {
  readonly key: string;
  /** Whether the value under the key decides if the object is plain. */
  readonly isSpecial: boolean;
  /** The keys that followed this key in the two latest kinds of objects. */
  next: KnownKey | undefined = undefined;
  other: KnownKey | undefined = undefined;

  constructor(key: string, isSpecial: boolean) {
    this.key = key;
    this.isSpecial = isSpecial;
  }
}

/**
 * Finds values that `JSON.stringify` may write as they are: plain data within the limits, in which no name or text is
 * that of a secret. False negatives only cost time. Reads each property once, so `JSON.stringify` reads it a second time.
 */
export class PlainCheck {
  readonly #names: SecretNames | undefined;
  readonly #texts: TextSecrets | undefined;
  readonly #known = new Map<string, KnownKey>();
  readonly #first = new KnownKey('', false);
  /** The stack of the latest walk, empty. Undefined during a walk, because a getter may start another. */
  #spare: object[] | undefined;

  /** Without names, nothing is masked. */
  constructor(names?: SecretNames, texts?: TextSecrets) {
    this.#names = names;
    this.#texts = texts;
  }

  /** Returns the JSON text of a value that is plain, else undefined. Throws if a getter throws. */
  jsonOf(value: unknown, limits: PayloadLimits): string | undefined {
    if (typeof value === 'object' && value !== null) {
      if (!this.#isPlain(value, limits)) return undefined;
    } else if (!this.#isPlainItem(value) || limits.nodes < 1) return undefined;
    const json = JSON.stringify(value);
    if (json === undefined || json.length > limits.bytes || json.indexOf(LONE_SURROGATE) >= 0) return undefined;
    return this.#texts?.hasSecretUrl(json) === true ? undefined : json;
  }

  /** Whether JSON text of an object is that of plain data. Throws if it is invalid. */
  isPlainJson(text: string, limits: PayloadLimits): boolean {
    if (text.length > limits.bytes || !text.isWellFormed() || SURROGATE_ESCAPE.test(text)) return false;
    // Parsing drops all but the last value of a duplicate name, so the text is searched as well.
    if (this.#texts?.isLikelyIn(text) === true || this.#texts?.hasSecretUrl(text) === true) return false;
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) && this.#isPlain(value, limits);
  }

  /** Whether the name of a field may be that of a secret. */
  isSpecial(key: string): boolean {
    return this.#keyOf(key).isSpecial;
  }

  /**
   * Visits objects without recursion, because a call per object would cost more than the rest. Goes down first, so a cycle
   * soon reaches the limit of depth.
   */
  #isPlain(root: object, { depth, width, nodes, bytes }: PayloadLimits): boolean {
    const objects = this.#spare ?? [];
    this.#spare = undefined;
    objects[0] = root;
    let waiting = 1;
    let level = 0;
    // The key before predicts the next key, also from one object to the next.
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
      objects[waiting - 1] = VISITED;
      const above = waiting;
      const type = object.constructor;
      let size = 0;
      if (type === Object || (type === undefined && Object.getPrototypeOf(object) === null)) {
        for (const key in object) {
          if (++size > width) return false;
          const value = object[key];
          const next = known.next;
          known = next !== undefined && next.key === key ? next : this.#keyAfter(known, key);
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
        // Objects made without a class, such as iterators, inherit from prototypes that have no `constructor`.
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
    return this.#texts === undefined || !this.#texts.mayMask(text);
  }

  /** Whether a value under a special key may be masked or written otherwise. */
  #mayHide(key: string, value: unknown, owner: object): boolean {
    if (isPairValue(key)) return this.#names?.hidesInPair(key, value, owner) === true;
    if (key === 'toJSON' || mayHoldNames(key)) return true;
    if (isHeaders(key) && Array.isArray(value)) return true;
    return this.#names?.hides(key, value, owner) === true;
  }

  /** Whether two items may be an entry in a list of pairs, of which the first is the name of a secret. */
  #mayBeSecretPair(first: unknown, second: unknown): boolean {
    return typeof first === 'string' && this.#names?.hidesAfter(first, second) === true;
  }

  #keyAfter(before: KnownKey, key: string): KnownKey {
    const { other } = before;
    if (other !== undefined && other.key === key) return other;
    const known = this.#keyOf(key);
    if (key.length > KEY_CHARACTERS_KEPT) return known;
    before.other = before.next;
    before.next = known;
    return known;
  }

  #keyOf(key: string): KnownKey {
    const found = this.#known.get(key);
    if (found !== undefined) return found;
    const known = new KnownKey(key, this.#examine(key));
    if (key.length > KEY_CHARACTERS_KEPT) return known;
    if (this.#known.size >= KEYS_KEPT) this.#known.clear();
    this.#known.set(key, known);
    return known;
  }

  #examine(key: string): boolean {
    if (key === 'toJSON') return true;
    if (this.#names === undefined) return false;
    return isPairValue(key) || isHeaders(key) || mayHoldNames(key) || this.#names.kindOf(key) !== undefined;
  }
}

/** Whether a text is long enough for an attachment and starts like a data URI. */
export function mayBeDataUri(text: string): boolean {
  return text.length > DATA_URI_CHARACTERS_MIN && text.startsWith('data:');
}

/** How `JSON.stringify` writes half of a surrogate pair, which strict services refuse. Escaped text may contain it too. */
const LONE_SURROGATE = '\\ud';

const SURROGATE_ESCAPE = /\\ud[89a-f]/i;
