/**
 * Bytes of the value as JSON text, escapes aside: the measure by which a store is bounded. It is counted, not written,
 * as that would cost more than the parsing did.
 */
export function jsonSizeBytes(value: unknown): number {
  let sizeBytes = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const item = pending.pop();
    if (typeof item === 'string') {
      sizeBytes += Buffer.byteLength(item) + 2;
    } else if (typeof item !== 'object' || item === null) {
      sizeBytes += String(item).length;
    } else if (Array.isArray(item)) {
      sizeBytes += 2 + Math.max(0, item.length - 1);
      for (const element of item) pending.push(element);
    } else {
      const keys = Object.keys(item);
      sizeBytes += 2 + Math.max(0, keys.length - 1);
      for (const key of keys) {
        sizeBytes += Buffer.byteLength(key) + 3;
        pending.push((item as Record<string, unknown>)[key]);
      }
    }
  }
  return sizeBytes;
}
