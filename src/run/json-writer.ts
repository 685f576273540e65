import { types } from 'node:util';
import { ignoreRejection } from '../base/guard.ts';
import { mayBeDataUri } from './data-uri.ts';
import {
  hasPlainPrototype,
  isInherited,
  isPrototypePolluted,
  lengthOf,
  otherText,
  read,
  threw,
  toJsonOf,
} from './foreign-value.ts';
import { JsonOutput } from './json-output.ts';
import { type KeyForm, type KeyForms, plainKeys } from './key-forms.ts';
import type { PayloadAttachments } from './payload-attachments.ts';
import type { PayloadRules } from './payload-rules.ts';
import type { Redaction } from './redaction.ts';
import type { PathPlace, Step } from './redaction-paths.ts';
import { isHeaders, type SecretNames } from './secret-names.ts';
import { errorKeys, isError, mapEntries, Some, type Summary, summaryOf } from './summary.ts';
import { redactAndTruncate, truncate } from './truncate.ts';

/** A key of up to this many characters is kept even when there is no room for text: it says what the payload was made of. */
const KEY_CHARACTERS_KEPT = 256;

/** Stands for the owner of a property that must not be asked for others. */
const NOBODY: object = Object.freeze(Object.create(null));

/**
 * Writes one value as JSON text, in one pass that reads everything once: code of the application that a value brings (a
 * getter, `toJSON`, the traps of a proxy) is called no more often than `JSON.stringify` would. What it throws costs its own
 * property alone, which says so. Nothing is changed in what is read.
 */
export class JsonWriter {
  readonly #rules: PayloadRules;
  readonly #redaction: Redaction | undefined;
  readonly #keys: KeyForms;
  readonly #hasPatterns: boolean;
  readonly #names: SecretNames | undefined;
  /** The value of the last key that ends with `headers`. */
  #headers: unknown;
  /** Whether it matters where in the payload one is. */
  readonly #isTracked: boolean;
  /** Whether all objects have properties that are not their own. */
  readonly #isPolluted: boolean;
  readonly #trail: Step[];
  #place: PathPlace | undefined;
  /** The objects between the root and the value at hand: only a true ancestor makes a cycle. */
  readonly #ancestors: object[] = [];
  #nodesLeft: number;
  #charactersLeft: number;
  readonly #attachments: PayloadAttachments | undefined;
  readonly #out = new JsonOutput();

  constructor(
    rules: PayloadRules,
    place: PathPlace | undefined,
    trail: readonly Step[],
    attachments?: PayloadAttachments,
  ) {
    const { redaction } = rules;
    this.#rules = rules;
    this.#attachments = attachments;
    this.#redaction = redaction;
    this.#keys = redaction?.keys ?? plainKeys;
    this.#hasPatterns = redaction?.hasPatterns === true;
    this.#names = redaction?.names;
    this.#isTracked = place !== undefined || redaction?.wantsTrail === true;
    this.#trail = this.#isTracked ? [...trail] : [];
    this.#place = place;
    this.#isPolluted = isPrototypePolluted();
    this.#nodesLeft = rules.nodes;
    this.#charactersLeft = rules.bytes;
  }

  /** The JSON text of the value. Throws where limits are set beyond what the stack or a string holds. */
  write(value: unknown): string {
    const out = this.#out;
    try {
      if (!this.#value(value)) out.add('null');
      return out.text();
    } finally {
      out.close();
    }
  }

  /** False for what JSON leaves out. */
  #value(value: unknown, asksToJson = true): boolean {
    if (--this.#nodesLeft < 0) this.#out.add('"[Truncated: too many values]"');
    else if (typeof value === 'string') this.#string(value);
    else if (typeof value === 'number') this.#number(value);
    else if (value === null) this.#out.add('null');
    else if (typeof value === 'boolean') this.#out.add(value ? 'true' : 'false');
    else if (typeof value === 'object') return this.#object(value, asksToJson);
    else if (value === undefined) return false;
    else this.#string(otherText(value));
    return true;
  }

  #number(value: number): void {
    this.#out.add(Number.isFinite(value) ? String(value) : `"${value}"`);
  }

  #string(given: string): void {
    let text = mayBeDataUri(given) ? (this.#attachments?.attachText(given) ?? given) : given;
    if (this.#names !== undefined) text = (this.#redaction as Redaction).maskNamed(text, this.#trail);
    let shown = text;
    if (text.length > this.#charactersLeft) shown = this.#cut(text);
    else if (this.#hasPatterns) shown = this.#masked(text);
    this.#charactersLeft = Math.max(0, this.#charactersLeft - shown.length);
    this.#out.addString(shown);
  }

  #cut(text: string): string {
    const left = this.#charactersLeft;
    this.#charactersLeft = 0;
    if (!this.#hasPatterns) return truncate(text, left);
    return redactAndTruncate(text, left, this.#redaction as Redaction, this.#trail);
  }

  #masked(text: string): string {
    return (this.#redaction as Redaction).maskFound(text, this.#trail);
  }

  #object(value: object, asksToJson: boolean): boolean {
    const ancestors = this.#ancestors;
    for (let at = 0; at < ancestors.length; at++) {
      if (ancestors[at] !== value) continue;
      this.#out.add('"[Circular]"');
      return true;
    }
    if (ancestors.length >= this.#rules.depth) {
      this.#out.add('"[Truncated: too deep]"');
      return true;
    }
    ancestors.push(value);
    const isWritten = types.isProxy(value) ? this.#proxy(value, asksToJson) : this.#byKind(value, asksToJson);
    ancestors.pop();
    return isWritten;
  }

  #byKind(value: object, asksToJson: boolean): boolean {
    const isList = Array.isArray(value);
    const isPlain = isList || hasPlainPrototype(value);
    if (!isPlain && this.#special(value)) return true;
    const toJson = asksToJson ? toJsonOf(value) : undefined;
    if (typeof toJson === 'function' && !isInherited(toJson)) {
      const result = this.#result(toJson, value);
      if (result !== value) return this.#value(result, false);
    }
    if (isList) this.#items(value, value.length, value.length);
    else if (isPlain && !this.#isPolluted) this.#properties(value);
    else this.#keyed(value, Object.keys(value), value);
    return true;
  }

  /** What a `toJSON` gives. */
  #result(toJson: unknown, value: object): unknown {
    try {
      const result: unknown = Reflect.apply(toJson as () => unknown, value, ['']);
      // An asynchronous one was called on our account alone; its rejection would otherwise end the process.
      ignoreRejection(result);
      return result;
    } catch (thrown) {
      return threw(thrown);
    }
  }

  /** Anything may happen when a proxy is asked; what can be read of it is told. */
  #proxy(value: object, asksToJson: boolean): boolean {
    let length: unknown;
    let keys: readonly string[] = [];
    try {
      const toJson: unknown = asksToJson ? (value as { toJSON?: unknown }).toJSON : undefined;
      if (typeof toJson === 'function') {
        const result = this.#result(toJson, value);
        if (result !== value) return this.#value(result, false);
      }
      if (Array.isArray(value)) length = value.length;
      else keys = Object.keys(value);
    } catch {
      this.#out.add('"[Proxy]"');
      return true;
    }
    if (length === undefined) this.#keyed(value, keys, NOBODY);
    else this.#items(value as unknown[], lengthOf(length), lengthOf(length));
    return true;
  }

  /** False where the object is like any other. */
  #special(value: object): boolean {
    if (types.isMap(value)) {
      this.#map(mapEntries(value, this.#rules.width));
      return true;
    }
    let summary: Summary | undefined;
    let keys: readonly string[] | undefined;
    try {
      if (isError(value)) keys = errorKeys(value);
      else summary = this.#attachments?.summaryOf(value) ?? summaryOf(value, this.#rules.width, this.#charactersLeft);
    } catch (thrown) {
      summary = threw(thrown);
    }
    if (keys !== undefined) this.#keyed(value, keys, value);
    else if (summary instanceof Some) this.#items(summary.items, summary.items.length, summary.size);
    else if (typeof summary === 'object') this.#keyed(summary, Object.keys(summary), summary);
    else if (summary === undefined) return false;
    else {
      // It stands for the value, which has been counted.
      this.#nodesLeft++;
      this.#value(summary);
    }
    return true;
  }

  /** `size` counts the items that there are; those beyond the `listed` are told with the others that are cut. */
  #items(items: readonly unknown[], listed: number, size: number): void {
    const kept = Math.min(listed, this.#rules.width);
    const out = this.#out;
    const isNamed = size > 0 && size % 2 === 0 && this.#isNamedList(items, size);
    let separator = '[';
    let taken = 0;
    let before: unknown;
    for (; taken < kept && this.#nodesLeft > 0; taken++) {
      out.add(separator);
      separator = ',';
      const value = read(items, taken);
      if (isNamed && taken % 2 === 1 && this.#names?.hidesAfter(before, value) === true) {
        this.#hidden(taken, value);
        continue;
      }
      const isWritten = this.#isTracked ? this.#tracked(taken, value) : this.#value(value);
      if (!isWritten) out.add('null');
      before = value;
    }
    if (taken < size) {
      out.add(`${separator}"[Truncated: ${size - taken} more items]"]`);
    } else out.add(separator === '[' ? '[]' : ']');
  }

  #isNamedList(items: readonly unknown[], size: number): boolean {
    const key = items === this.#headers ? 'headers' : undefined;
    return this.#names?.isNamedList(size, this.#ancestors[this.#ancestors.length - 2], key) === true;
  }

  /**
   * The enumerable properties of a plain object. Nearly every value comes by here, so what is plain is written in place:
   * a loop over its own keys gives the values of an object several times as fast as reading them one by one.
   */
  #properties(object: object): void {
    const keys = this.#keys;
    const out = this.#out;
    const { width } = this.#rules;
    let isFirst = true;
    let taken = 0;
    let left = 0;
    let form: KeyForm = keys.start;
    for (const key in object) {
      const isShort = key.length <= KEY_CHARACTERS_KEPT && taken < width && this.#nodesLeft > 0;
      if (left > 0 || !(isShort || this.#hasRoomFor(key, taken))) {
        left++;
        continue;
      }
      taken++;
      let value: unknown;
      try {
        value = (object as Record<string, unknown>)[key];
      } catch (thrown) {
        value = threw(thrown);
      }
      form = keys.after(form, key);
      const isPlain = form.bytes !== undefined && !this.#isTracked && value !== undefined;
      if (!isPlain || (form.isPairValue && this.#names?.hidesInPair(key, value, object) === true)) {
        if (this.#property(key, value, object, isFirst)) isFirst = false;
        continue;
      }
      const bytes = form.bytes as Buffer;
      out.addKey(bytes, isFirst);
      this.#charactersLeft -= key.length;
      if (this.#value(value)) isFirst = false;
      else out.drop(bytes.length);
    }
    this.#endObject(isFirst, left);
  }

  /** Properties by their keys. `owner` is asked about others where a name alone does not say whether it hides a secret. */
  #keyed(object: object, keys: readonly string[], owner: object): void {
    let isFirst = true;
    let taken = 0;
    while (taken < keys.length) {
      const key = keys[taken] as string;
      if (!this.#hasRoomFor(key, taken)) break;
      taken++;
      if (this.#property(key, read(object, key), owner, isFirst)) isFirst = false;
    }
    this.#endObject(isFirst, keys.length - taken);
  }

  /** An object when all the keys that are kept are text, else a list of pairs. */
  #map({ items, size }: Some): void {
    const pairs = items as readonly (readonly [unknown, unknown])[];
    if (!pairs.every(([key]) => typeof key === 'string')) {
      const shown = pairs.map(([key, value]) => [key, this.#shown(key, value)]);
      this.#items(shown, shown.length, size);
      return;
    }
    let isFirst = true;
    let taken = 0;
    for (const [key, value] of pairs as readonly (readonly [string, unknown])[]) {
      if (!this.#hasRoomFor(key, taken)) break;
      taken++;
      if (this.#property(key, value, NOBODY, isFirst)) isFirst = false;
    }
    this.#endObject(isFirst, size - taken);
  }

  /** The value of a pair, or its mask. */
  #shown(key: unknown, value: unknown): unknown {
    if (typeof key !== 'string' || this.#redaction?.isHidden(key, value, NOBODY) !== true) return value;
    return this.#redaction.mask(value, [...this.#trail, key]);
  }

  #hasRoomFor(key: string, taken: number): boolean {
    if (taken >= this.#rules.width || this.#nodesLeft <= 0) return false;
    return key.length <= KEY_CHARACTERS_KEPT || key.length <= this.#charactersLeft;
  }

  #endObject(isEmpty: boolean, left: number): void {
    if (left > 0) this.#out.add(`${isEmpty ? '{' : ','}"[Truncated]":"${left} more keys"}`);
    else this.#out.add(isEmpty ? '{}' : '}');
  }

  /** False where nothing was written. */
  #property(key: string, value: unknown, owner: object, isFirst: boolean): boolean {
    if (value === undefined) return false;
    const out = this.#out;
    const before = out.length;
    const form = this.#keys.of(key);
    this.#charactersLeft -= key.length;
    if (form.bytes !== undefined && !form.isPairValue && !this.#isTracked) {
      out.addKey(form.bytes, isFirst);
      if (this.#value(value)) return true;
      out.drop(form.bytes.length);
      return false;
    }
    if (key === 'toJSON' && typeof value === 'function') return false;
    const shownKey = this.#redaction === undefined ? key : this.#masked(this.#redaction.maskNamed(key, this.#trail));
    out.add(isFirst ? '{' : ',');
    out.addString(shownKey);
    out.add(':');
    if (this.#redaction?.isHidden(key, value, owner)) return this.#hidden(key, value);
    if (isHeaders(key)) this.#headers = value;
    if (this.#isTracked ? this.#tracked(key, value) : this.#value(value)) return true;
    out.drop(out.length - before);
    return false;
  }

  /** A value where the paths of the redaction, or its replacement, want to know the way to it. */
  #tracked(step: Step, value: unknown): boolean {
    const above = this.#place;
    const place = above?.step(step);
    if (place?.isEnd === true) return this.#hidden(step, value);
    this.#place = place;
    this.#trail.push(step);
    const isWritten = this.#value(value);
    this.#trail.pop();
    this.#place = above;
    return isWritten;
  }

  #hidden(step: Step, value: unknown): boolean {
    this.#nodesLeft--;
    const mask = (this.#redaction as Redaction).mask(value, [...this.#trail, step]);
    this.#charactersLeft -= mask.length;
    this.#out.addString(mask);
    return true;
  }
}
