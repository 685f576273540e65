import { createHash } from 'node:crypto';
import { canonicalId } from '../../run/time.ts';

export function derivedUuid(text: string): string {
  const bytes = createHash('sha256').update(`runspan ${text}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return canonicalId(bytes.toString('hex'));
}
