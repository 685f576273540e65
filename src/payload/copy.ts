import { ignoreRejection } from '../base/guard.ts';
import { types } from '../platform/node.ts';
import type { PayloadAttachments } from './attachment.ts';
import { describe, errorKeys, Items, isError, mapEntries, primitiveText, read, threw } from './describe.ts';
import { ExactNumber, hasPlainPrototype, put } from './fields.ts';
import { isHeaders } from './redaction/names.ts';
import type { PathMatcher, Step } from './redaction/paths.ts';
import type { Redaction } from './redaction/redact.ts';
import { type PayloadRules, redactAndTruncate, truncate } from './truncate.ts';

/** After a payload reaches its character limit, only keys up to this length are kept. */
const KEY_CHARACTERS_KEPT = 256;

const CIRCULAR = '[Circular]';
const TOO_MANY = '[Truncated: too many values]';
const TOO_DEEP = '[Truncated: too deep]';

/**
 * Copies a value into plain data, masks secrets and applies the limits. Reads each property once. Calls getters,
 * `toJSON` and proxy traps at most as often as `JSON.stringify`. If a property throws, a marker is recorded instead.
 * Never changes the original value.
 */
export class Copier {
  readonly #rules: PayloadRules;
  readonly #redaction: Redaction | undefined;
  readonly #attachments: PayloadAttachments | undefined;
  /** Whether each value's path is needed, for redaction paths or a replacement function. */
  readonly #isTracked: boolean;
  readonly #trail: Step[];
  #matcher: PathMatcher | undefined;
  readonly #ancestors: object[] = [];
  /** The last copied value whose key ends with `headers`. */
  #headers: unknown;
  #nodesLeft: number;
  #charactersLeft: number;

  constructor(
    rules: PayloadRules,
    matcher: PathMatcher | undefined,
    trail: readonly Step[],
    attachments: PayloadAttachments | undefined,
  ) {
    const { redaction } = rules;
    this.#rules = rules;
    this.#redaction = redaction;
    this.#attachments = attachments;
    this.#isTracked = matcher !== undefined || redaction?.wantsTrail === true;
    this.#trail = this.#isTracked ? [...trail] : [];
    this.#matcher = matcher;
    this.#nodesLeft = rules.nodes;
    this.#charactersLeft = rules.bytes;
  }

  /** Throws if the value is nested too deeply for the call stack. */
  copy(value: unknown, asksToJson = true): unknown {
    if (--this.#nodesLeft < 0) return TOO_MANY;
    if (typeof value === 'string') return this.#text(value);
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
    if (typeof value === 'object' && value !== null) return this.#object(value, asksToJson);
    if (value === undefined || value === null || typeof value === 'boolean') return value;
    return this.#text(this.#rules.isLangSmith && typeof value === 'bigint' ? String(value) : primitiveText(value));
  }

  #text(given: string): string {
    let text = this.#attachments?.attachText(given) ?? given;
    const redaction = this.#redaction;
    if (redaction !== undefined) text = redaction.maskNamed(text, this.#trail);
    const left = this.#charactersLeft;
    if (text.length > left) {
      this.#charactersLeft = 0;
      const cut =
        redaction === undefined ? truncate(text, left) : redactAndTruncate(text, left, redaction, this.#trail);
      return cut.toWellFormed();
    }
    if (redaction !== undefined) text = redaction.maskFound(text, this.#trail);
    this.#charactersLeft = Math.max(0, left - text.length);
    return text.toWellFormed();
  }

  #object(value: object, asksToJson: boolean): unknown {
    if (this.#ancestors.includes(value)) return this.#rules.isLangSmith ? { result: CIRCULAR } : CIRCULAR;
    if (this.#ancestors.length >= this.#rules.depth) return TOO_DEEP;
    this.#ancestors.push(value);
    const copy = types.isProxy(value) ? this.#proxy(value, asksToJson) : this.#byKind(value, asksToJson);
    this.#ancestors.pop();
    return copy;
  }

  #byKind(value: object, asksToJson: boolean): unknown {
    const isList = Array.isArray(value);
    if (!isList && !hasPlainPrototype(value)) {
      if (value instanceof ExactNumber && value.digits.length <= this.#charactersLeft) return value;
      const copy = this.#platformObject(value);
      if (copy !== undefined) return copy;
    }
    const toJson = asksToJson ? read(value, 'toJSON') : undefined;
    if (typeof toJson === 'function') {
      const result = resultOf(toJson, value);
      if (result !== value) return this.copy(result, false);
    }
    return isList ? this.#items(value, value.length, value.length) : this.#properties(value, Object.keys(value));
  }

  /** Copies a proxy. Proxy traps may throw or return values of unexpected types. */
  #proxy(value: object, asksToJson: boolean): unknown {
    let length: unknown;
    let keys: readonly string[] = [];
    try {
      const toJson: unknown = asksToJson ? (value as { toJSON?: unknown }).toJSON : undefined;
      if (typeof toJson === 'function') {
        const result = resultOf(toJson, value);
        if (result !== value) return this.copy(result, false);
      }
      if (Array.isArray(value)) length = value.length;
      else keys = Object.keys(value);
    } catch {
      return '[Proxy]';
    }
    if (length === undefined) return this.#properties(value, keys);
    const size = Number.isSafeInteger(length) ? Math.max(0, length as number) : 0;
    return this.#items(value as unknown[], size, size);
  }

  /** Copies a platform object, for example a Map, an Error or a stream. */
  #platformObject(value: object): unknown {
    if (types.isMap(value)) return this.#map(mapEntries(value, this.#rules.width));
    let description: unknown;
    try {
      if (isError(value)) return this.#error(value);
      description = this.#attachments?.describe(value) ?? describe(value, this.#rules.width);
    } catch (thrown) {
      description = threw(thrown);
    }
    if (description instanceof Items) return this.#items(description.items, description.items.length, description.size);
    if (typeof description === 'object') {
      const keyed = description as object;
      return this.#properties(keyed, Object.keys(keyed));
    }
    if (description === undefined) return undefined;
    // `copy` counts the value as a node again, so the first count is undone.
    this.#nodesLeft++;
    return this.copy(description);
  }

  /** Copies up to `listed` items, and adds a marker if there are more. `size` is the total number of items. */
  #items(items: readonly unknown[], listed: number, size: number): unknown[] {
    const kept = Math.min(listed, this.#rules.width);
    const names = this.#redaction?.names;
    const parent = this.#ancestors.at(-2);
    const isNamed = names?.isNamedList(size, parent, items === this.#headers ? 'headers' : undefined) === true;
    const copies: unknown[] = [];
    let before: unknown;
    for (let index = 0; index < kept && this.#nodesLeft > 0; index++) {
      const value = read(items, index);
      const isHidden = isNamed && index % 2 === 1 && names?.hidesAfter(before, value) === true;
      copies.push(isHidden ? this.#mask(index, value) : this.#below(index, value));
      before = value;
    }
    if (copies.length < size) copies.push(`[Truncated: ${size - copies.length} more items]`);
    return copies;
  }

  #properties(object: object, keys: readonly string[]): object {
    return this.#keyed(this.#valuesOf(object, keys), keys.length);
  }

  /** Masks the message in the stack, too. The stack as a whole is not JSON, so secret names in it are not found. */
  #error(error: object): object {
    const keys = errorKeys(error);
    const values: Record<string, unknown> = this.#valuesOf(error, keys);
    const { message, stack } = values;
    if (typeof message === 'string' && typeof stack === 'string') {
      values.stack = stack.replace(message, () => this.#redaction?.maskNamed(message, this.#trail) ?? message);
    }
    return this.#keyed(values, keys.length);
  }

  #valuesOf(object: object, keys: readonly string[]): Record<string, unknown> {
    const values = {};
    for (const key of keys.slice(0, this.#rules.width)) put(values, key, read(object, key));
    return values;
  }

  #map({ items, size }: Items): unknown {
    const pairs = items as readonly (readonly [unknown, unknown])[];
    if (!pairs.every(([key]) => typeof key === 'string')) {
      const shown = pairs.map(([key, value]) => [key, this.#shownBy(key, value)]);
      return this.#items(shown, shown.length, size);
    }
    const values = {};
    for (const [key, value] of pairs as readonly (readonly [string, unknown])[]) put(values, key, value);
    return this.#keyed(values, size);
  }

  /**
   * Copies values that were read before. A value may be a secret because of another one, as in `{ value: '…', name:
   * 'password' }`. `size` is the total number of keys.
   */
  #keyed(values: object, size: number): object {
    const copy = {};
    let taken = 0;
    for (const [key, value] of Object.entries(values)) {
      if (!this.#hasRoomFor(key, taken)) break;
      taken++;
      this.#property(copy, key, value, values);
    }
    if (taken < size) put(copy, '[Truncated]', `${size - taken} more keys`);
    return copy;
  }

  #shownBy(key: unknown, value: unknown): unknown {
    if (typeof key !== 'string' || this.#redaction?.names?.hides(key, value, {}) !== true) return value;
    return this.#redaction.mask(value, [...this.#trail, key]);
  }

  #hasRoomFor(key: string, taken: number): boolean {
    if (taken >= this.#rules.width || this.#nodesLeft <= 0) return false;
    return key.length <= KEY_CHARACTERS_KEPT || key.length <= this.#charactersLeft;
  }

  #property(into: object, key: string, value: unknown, owner: object): void {
    if (value === undefined || (key === 'toJSON' && typeof value === 'function')) return;
    this.#charactersLeft -= key.length;
    const redaction = this.#redaction;
    let shownKey = key;
    let isHidden = false;
    if (redaction?.isSpecialKey(key) === true) {
      shownKey = redaction.maskNamed(key, this.#trail);
      isHidden = redaction.names?.hides(key, value, owner) === true;
      if (isHeaders(key)) this.#headers = value;
    }
    if (redaction !== undefined) shownKey = redaction.maskFound(shownKey, this.#trail);
    const copy = isHidden ? this.#mask(key, value) : this.#below(key, value);
    if (copy !== undefined) put(into, shownKey.toWellFormed(), copy);
  }

  /** Copies the value of a property or item, or masks the value if a redaction path matches. */
  #below(step: Step, value: unknown): unknown {
    if (!this.#isTracked) return this.copy(value);
    const above = this.#matcher;
    const matcher = above?.step(step);
    if (matcher?.isMatch === true) return this.#mask(step, value);
    this.#matcher = matcher;
    this.#trail.push(step);
    const copy = this.copy(value);
    this.#trail.pop();
    this.#matcher = above;
    return copy;
  }

  #mask(step: Step, value: unknown): string {
    this.#nodesLeft--;
    const mask = (this.#redaction as Redaction).mask(value, [...this.#trail, step]);
    this.#charactersLeft -= mask.length;
    return mask.toWellFormed();
  }
}

function resultOf(toJson: unknown, value: object): unknown {
  try {
    const result: unknown = Reflect.apply(toJson as () => unknown, value, ['']);
    // If `toJSON` returned a promise, its rejection must be handled here.
    ignoreRejection(result);
    return result;
  } catch (thrown) {
    return threw(thrown);
  }
}
