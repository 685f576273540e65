// The functions of `node:crypto` that the library calls, for runtimes without Node's modules.
import { sha1 } from '@noble/hashes/legacy.js';

export const randomBytes = (bytes: number): Buffer => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes)));

export const createHash = (): Sha1 => new Sha1();

class Sha1 {
  readonly #hash = sha1.create();

  update(part: string | Uint8Array): this {
    this.#hash.update(Buffer.from(part as string));
    return this;
  }

  digest(): Buffer {
    return Buffer.from(this.#hash.digest());
  }
}
