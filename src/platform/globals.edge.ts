// Replaces globals of the same names in the build for Cloudflare Workers and Vercel's edge runtime.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The methods of Node's `Buffer` that the library uses. */
export class Buffer extends Uint8Array {
  static allocUnsafeSlow(bytes: number): Buffer {
    return new Buffer(bytes);
  }

  static override from(content: unknown, encoding?: unknown, length?: number): Buffer {
    if (typeof content !== 'string') return new Buffer(content as ArrayBuffer, encoding as number, length);
    if (encoding === 'hex')
      return new Buffer((content.match(/../g) ?? []).map((digits) => Number.parseInt(digits, 16)));
    if (encoding !== 'base64') return new Buffer(encoder.encode(content));
    return new Buffer(Array.from(fromBase64(content), (character) => character.charCodeAt(0)));
  }

  static byteLength(content: string | ArrayBufferView): number {
    return typeof content === 'string' ? encoder.encode(content).length : content.byteLength;
  }

  static concat(chunks: readonly Uint8Array[]): Buffer {
    const all = new Buffer(chunks.reduce((bytes, { length }) => bytes + length, 0));
    let at = 0;
    for (const chunk of chunks) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }

  /** Writes as many complete characters as fit, and returns the number of bytes written. */
  write(text: string, at: number): number {
    return encoder.encodeInto(text, this.subarray(at)).written;
  }

  copy(target: Uint8Array, targetAt: number, start: number, end: number): void {
    target.set(this.subarray(start, end), targetAt);
  }

  override toString(encoding?: string): string {
    if (encoding === 'hex') return Array.from(this, (byte) => byte.toString(16).padStart(2, '0')).join('');
    if (encoding !== 'base64') return decoder.decode(this);
    let text = '';
    for (const byte of this) text += String.fromCharCode(byte);
    return btoa(text);
  }
}

/** Decodes base64. Unlike Node, returns an empty string for invalid base64. */
function fromBase64(text: string): string {
  try {
    return atob(text);
  } catch {
    return '';
  }
}

// Cloudflare Workers with an early compatibility date lack `FinalizationRegistry` and `WeakRef`.

/** Without the native class, the library cannot detect results that are never read to the end. */
const Registry: typeof FinalizationRegistry =
  globalThis.FinalizationRegistry ??
  class {
    register(): void {}
    unregister(): void {}
  };

const Reference: typeof WeakRef =
  globalThis.WeakRef ??
  class {
    readonly #target: object;
    constructor(target: object) {
      this.#target = target;
    }
    deref(): object {
      return this.#target;
    }
  };

export { Reference as WeakRef, Registry as FinalizationRegistry };
