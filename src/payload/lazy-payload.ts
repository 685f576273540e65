import { types } from '../platform/node.ts';
import { mayBeDataUri, type PayloadLimits } from './plain.ts';

/** A copy of plain data that is encoded when its text is read, because its run may be left out before that. */
export class LazyPayload {
  readonly attachments: undefined;
  /** Approximate length of the text, in characters. */
  length = 0;
  readonly #copied: unknown;
  readonly #encode: (copy: unknown) => string;
  #nodesLeft: number;

  /** Throws if `value` has more than plain objects, arrays, primitives and short data URIs, or exceeds the limits. */
  constructor(value: unknown, { depth, nodes }: PayloadLimits, encode: (copy: unknown) => string) {
    this.#nodesLeft = nodes;
    this.#encode = encode;
    this.#copied = this.#copy(value, depth);
  }

  get json(): string {
    return this.#encode(this.#copied);
  }

  #copy(value: unknown, depth: number): unknown {
    this.length += KEY_CHARACTERS;
    if (typeof value === 'object') return value === null ? null : this.#copyObject(value, depth);
    if (typeof value === 'function') throw NOT_PLAIN;
    if (typeof value === 'string') {
      if (mayBeDataUri(value)) throw NOT_PLAIN;
      this.length += value.length;
    }
    return value;
  }

  #copyObject(value: object, depth: number): object {
    if (depth === 0 || types.isProxy(value) || 'toJSON' in value) throw NOT_PLAIN;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Array.prototype && Array.isArray(value)) {
      this.#count(value.length);
      const list: unknown[] = value.slice();
      for (let at = 0; at < list.length; at++) list[at] = this.#copy(list[at], depth - 1);
      return list;
    }
    if (prototype !== Object.prototype && prototype !== null) throw NOT_PLAIN;
    const fields: Record<string, unknown> = { ...value };
    const keys = Object.keys(fields);
    this.#count(keys.length);
    for (const key of keys) fields[key] = this.#copy(fields[key], depth - 1);
    return fields;
  }

  #count(items: number): void {
    this.#nodesLeft -= items;
    if (this.#nodesLeft < 0) throw NOT_PLAIN;
  }
}

const KEY_CHARACTERS = 8;

/** Thrown without a stack trace, which would take longer than the copy. */
const NOT_PLAIN: unique symbol = Symbol('not plain');
