import { types } from '../platform/node.ts';
import { mayBeDataUri, type PayloadLimits } from './plain.ts';

/** A payload that is encoded when its text is first read, because the run may be left out before that. */
export class LatePayload {
  readonly attachments: undefined;
  /** Approximate length of the text, in characters. */
  readonly length: number;
  readonly #encode: () => string;

  constructor(length: number, encode: () => string) {
    this.length = length;
    this.#encode = encode;
  }

  get json(): string {
    return this.#encode();
  }
}

/**
 * Returns a payload that contains a copy of `value`, which later changes do not affect. Undefined if `value` contains
 * more than plain objects, arrays, numbers and short data URIs, or exceeds the limits.
 */
export function latePayload(
  value: unknown,
  { depth, nodes }: PayloadLimits,
  encode: (copy: unknown) => string,
): LatePayload | undefined {
  try {
    const copier = new PlainCopier(nodes);
    const copy = copier.copy(value, depth);
    return new LatePayload(copier.characters, () => encode(copy));
  } catch {
    // The value is not plain, or a getter threw.
    return undefined;
  }
}

const KEY_CHARACTERS = 8;

class PlainCopier {
  characters = 0;
  #nodesLeft: number;

  constructor(nodes: number) {
    this.#nodesLeft = nodes;
  }

  /** Throws if the value is not plain. */
  copy(value: unknown, depth: number): unknown {
    this.characters += KEY_CHARACTERS;
    if (typeof value === 'string') {
      if (mayBeDataUri(value)) throw NOT_PLAIN;
      this.characters += value.length;
    } else if (typeof value === 'object') return value === null ? null : this.#copyObject(value, depth);
    else if (typeof value === 'function') throw NOT_PLAIN;
    return value;
  }

  #copyObject(value: object, depth: number): object {
    if (depth === 0 || types.isProxy(value) || 'toJSON' in value) throw NOT_PLAIN;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Array.prototype && Array.isArray(value)) {
      this.#count(value.length);
      const list: unknown[] = value.slice();
      for (let at = 0; at < list.length; at++) list[at] = this.copy(list[at], depth - 1);
      return list;
    }
    if (prototype !== Object.prototype && prototype !== null) throw NOT_PLAIN;
    const fields: Record<string, unknown> = { ...value };
    const keys = Object.keys(fields);
    this.#count(keys.length);
    for (const key of keys) fields[key] = this.copy(fields[key], depth - 1);
    return fields;
  }

  #count(items: number): void {
    this.#nodesLeft -= items;
    if (this.#nodesLeft < 0) throw NOT_PLAIN;
  }
}

/** Thrown without a stack trace, which would take longer than the copy. */
const NOT_PLAIN: unique symbol = Symbol('not plain');
