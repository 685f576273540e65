import { createHash } from 'node:crypto';

/** Returns 32 hex digits as a UUID. */
export function uuidOf(hex: string): string {
  return hex.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Derives a UUID of version 8 from a text. */
export function derivedUuid(text: string): string {
  const bytes = createHash('sha256').update(`runspan ${text}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return uuidOf(bytes.toString('hex'));
}
