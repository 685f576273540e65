import { isBinary, read } from '../../payload/describe.ts';
import { hasPlainPrototype } from '../../payload/fields.ts';
import { types } from '../../platform/node.ts';

/** Maximum size of a binary chunk that `aggregate` and `outputs` receive, in bytes. */
const BINARY_BYTES_MAX = 65_536;

/** Maximum number of objects whose properties are counted per chunk. A chunk may refer to the whole application. */
const OBJECTS_COUNTED_MAX = 10_000;

/** Maximum number of items that are counted per array. */
const ITEMS_COUNTED_MAX = 10_000;

/** Size in characters from which an object is remembered for the whole stream. */
const LARGE_CHARACTERS = 256;

/** Maximum number of smaller objects that are remembered for one chunk. */
const SMALL_MAX = 16;

/** Estimated size of a value, without the characters of a text. */
const VALUE_CHARACTERS = 8;

/** The original chunks of one result, for `aggregate` and `outputs`. */
export class ChunkValues {
  readonly all: unknown[] = [];
  /**
   * Counted objects that are large or are in a large chunk. An object that occurs in several chunks takes up memory only
   * once. Small objects are left out, because adding an object to a set can take longer than counting it.
   */
  readonly #counted = new Set<object>();
  /** The other counted objects of the current chunk. */
  readonly #small: object[] = [];
  /** Objects to count. The array is reused for each chunk. */
  readonly #waiting: object[] = [];

  add(chunk: unknown): number {
    if (ArrayBuffer.isView(chunk)) {
      // Copies the chunk, because a byte stream may reuse its buffer for the next chunk.
      const copy = new Uint8Array(chunk.buffer, chunk.byteOffset, Math.min(chunk.byteLength, BINARY_BYTES_MAX)).slice();
      this.all.push(copy);
      return copy.byteLength;
    }
    this.all.push(chunk);
    const size = this.#sizeOf(chunk);
    if (this.#waiting.length === 0) return size;
    this.#small.length = 0;
    return size + this.#sizeOfWaiting();
  }

  /** Returns the size of a value without its properties. An object waits until its properties are counted. */
  #sizeOf(value: unknown): number {
    if (typeof value === 'string') return VALUE_CHARACTERS + value.length;
    if (typeof value === 'object' && value !== null) this.#waiting.push(value);
    return VALUE_CHARACTERS;
  }

  #sizeOfWaiting(): number {
    let size = 0;
    try {
      for (let left = OBJECTS_COUNTED_MAX; left > 0; left--) {
        const object = this.#waiting.pop();
        if (object === undefined) return size;
        if (this.#small.includes(object) || this.#counted.has(object)) continue;
        const own = this.#sizeOfObject(object);
        if (own < LARGE_CHARACTERS && this.#small.length < SMALL_MAX) this.#small.push(object);
        else this.#counted.add(object);
        size += own;
      }
    } catch {
      // A proxy trap threw.
    }
    this.#waiting.length = 0;
    return size;
  }

  #sizeOfObject(object: object): number {
    if (Array.isArray(object)) return this.#sizeOfItems(object);
    let size = 0;
    if (!hasPlainPrototype(object)) {
      if (isBinary(object)) return object.byteLength;
      if (types.isMap(object)) {
        for (const pair of Map.prototype.entries.call(object)) size += this.#sizeOfItems(pair);
      } else if (types.isSet(object)) {
        for (const value of Set.prototype.values.call(object)) size += this.#sizeOf(value);
      }
    }
    for (const key of Object.keys(object)) size += key.length + this.#sizeOf(read(object, key));
    return size;
  }

  #sizeOfItems(items: readonly unknown[]): number {
    const count = Math.min(items.length, ITEMS_COUNTED_MAX);
    let size = 0;
    for (let index = 0; index < count; index++) size += this.#sizeOf(items[index]);
    return count === items.length ? size : size * (items.length / count);
  }
}
