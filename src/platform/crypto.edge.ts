// Replaces `crypto.ts` in browsers and on runtimes without Node's built-in modules.
import { sha1 as hashOf } from '@noble/hashes/legacy.js';

export const randomBytes = (bytes: number): Buffer => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes)));

export const sha1 = (bytes: Uint8Array): Buffer => Buffer.from(hashOf(bytes));
