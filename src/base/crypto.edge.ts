// The functions of `node:crypto` that the library calls, for runtimes without Node's modules.

export const randomBytes = (bytes: number): Buffer => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes)));

export const createHash = (): Sha1 => new Sha1();

/** SHA-1 of one short text, which derives run ids from keys (RFC 3174). */
class Sha1 {
  #bytes: Uint8Array = new Uint8Array();

  update(part: string | Uint8Array): this {
    this.#bytes = Buffer.concat([this.#bytes, Buffer.from(part as string)]);
    return this;
  }

  digest(): Buffer {
    const { length } = this.#bytes;
    const padded = new Uint8Array(Math.ceil((length + 9) / 64) * 64);
    padded.set(this.#bytes);
    padded[length] = 0x80;
    const view = new DataView(padded.buffer);
    view.setUint32(padded.length - 4, length * 8);
    const hash = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
    for (let at = 0; at < padded.length; at += 64) addBlock(hash, view, at);
    for (const [index, word] of hash.entries()) view.setUint32(index * 4, word);
    return Buffer.from(padded.buffer, 0, 20);
  }
}

const rotated = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));

function addBlock(hash: number[], view: DataView, at: number): void {
  const words = Array.from({ length: 16 }, (_, index) => view.getInt32(at + index * 4));
  let [a, b, c, d, e] = hash as [number, number, number, number, number];
  for (let round = 0; round < 80; round++) {
    if (round >= 16) {
      const mixed = [3, 8, 14, 16].reduce((sum, back) => sum ^ (words[round - back] as number), 0);
      words.push(rotated(mixed, 1));
    }
    const quarter = Math.floor(round / 20);
    const f = quarter === 0 ? (b & c) | (~b & d) : quarter === 2 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
    const k = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6][quarter] as number;
    [a, b, c, d, e] = [(rotated(a, 5) + f + e + k + (words[round] as number)) | 0, a, rotated(b, 30), c, d];
  }
  for (const [index, word] of [a, b, c, d, e].entries()) hash[index] = ((hash[index] as number) + word) | 0;
}
