// Replaces `crypto.ts` in browsers and on runtimes without Node's built-in modules.
import { sha1 as hashOf } from '@noble/hashes/legacy.js';

export const fillRandom = (block: Uint32Array): void => void crypto.getRandomValues(block);

export const sha1 = (bytes: Uint8Array): Buffer => Buffer.from(hashOf(bytes));
