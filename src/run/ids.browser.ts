import { createHash } from '../base/crypto.edge.ts';
import { canonicalId } from './time.ts';

/**
 * Returns a UUIDv7. `crypto.randomUUID` creates ids of version 4, and is not available on pages loaded over plain HTTP.
 */
export function newRunId(startUs: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const ms = Math.floor(startUs / 1_000);
  return canonicalId(`${ms.toString(16).padStart(12, '0')}7${random.slice(0, 3)}8${random.slice(3, 18)}`);
}

/** Returns the same id as on Node. */
export function runIdFrom(key: string): string {
  const namespace = Buffer.from('efbbad0ad40851189657a2b2ede2c632', 'hex');
  const hash = createHash().update(namespace).update(String(key)).digest();
  hash[6] = ((hash[6] as number) & 0x0f) | 0x50;
  hash[8] = ((hash[8] as number) & 0x3f) | 0x80;
  return canonicalId(hash.subarray(0, 16).toString('hex'));
}
