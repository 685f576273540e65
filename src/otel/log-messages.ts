import { hasPlainPrototype } from '../payload/describe.ts';
import type { PayloadLimits } from '../payload/plain.ts';
import type { Attributes, Fields } from './conventions/values.ts';
import { addAttributes } from './message-events.ts';

const CUT = '[Truncated]';

/**
 * Copies of the messages that log records add to an open span, under the names of attributes. All messages together are
 * subject to the limits of one payload. Records beyond the limits are dropped and counted.
 */
export class LogMessages {
  readonly attributes: Fields = {};
  readonly #depthMax: number;
  #nodesLeft: number;
  #bytesLeft: number;
  #leftOut = 0;

  constructor({ depth, nodes, bytes }: PayloadLimits) {
    this.#depthMax = depth;
    this.#nodesLeft = nodes;
    this.#bytesLeft = bytes;
  }

  /** Number of records beyond the limits. */
  get leftOut(): number {
    return this.#leftOut;
  }

  add(values: Attributes): void {
    if (this.#nodesLeft <= 0 || this.#bytesLeft <= 0) this.#leftOut++;
    else addAttributes(this.attributes, this.#copy(values, 0) as Attributes);
  }

  #copy(value: unknown, depth: number): unknown {
    if (typeof value === 'bigint') return String(value);
    if (typeof value === 'string') this.#bytesLeft -= value.length;
    if (typeof value !== 'object' || value === null) return value;
    if (ArrayBuffer.isView(value)) return this.#bytes(value);
    if (depth > this.#depthMax || this.#nodesLeft <= 0) return CUT;
    if (Array.isArray(value)) return this.#list(value, depth);
    // Built-in objects are described by the serializer, not by their keys.
    return hasPlainPrototype(value) ? this.#object(value, depth) : value;
  }

  #list(list: readonly unknown[], depth: number): unknown[] {
    const copy: unknown[] = [];
    for (const item of list) {
      if (this.#nodesLeft-- <= 0) return [...copy, CUT];
      copy.push(this.#copy(item, depth + 1));
    }
    return copy;
  }

  #object(object: object, depth: number): Fields {
    const copy: Fields = Object.create(null);
    for (const [key, value] of Object.entries(object)) {
      if (this.#nodesLeft-- <= 0) break;
      this.#bytesLeft -= key.length;
      copy[key] = this.#copy(value, depth + 1);
    }
    return copy;
  }

  #bytes({ buffer, byteOffset, byteLength }: ArrayBufferView): unknown {
    if (byteLength > this.#bytesLeft) return `[Left out: ${byteLength} bytes]`;
    this.#bytesLeft -= byteLength;
    return new Uint8Array(buffer, byteOffset, byteLength).slice();
  }
}
