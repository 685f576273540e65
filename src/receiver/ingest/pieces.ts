/** Pieces that are put together at a time. */
const JOINED = 256;

/**
 * Bytes that come in pieces. A piece of one byte costs a hundred times as much, and a body may be made of them, so that many
 * are put together as they come.
 */
export class Pieces {
  readonly #joined: Buffer[] = [];
  #latest: Buffer[] = [];

  push(bytes: Buffer): void {
    this.#latest.push(bytes);
    if (this.#latest.length < JOINED) return;
    this.#joined.push(Buffer.concat(this.#latest));
    this.#latest = [];
  }

  /** All of them: a single piece as it came, several in a copy. */
  whole(): Buffer {
    const all = [...this.#joined, ...this.#latest];
    const [first] = all;
    return all.length === 1 && first !== undefined ? first : Buffer.concat(all);
  }
}
