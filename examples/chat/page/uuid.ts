let lastMs = 0;
let counter = 0;

/** A UUIDv7: ids that are made later sort after those that are made earlier. */
export function uuidv7(nowMs: number = Date.now()): string {
  counter = nowMs > lastMs ? 0 : counter + 1;
  // The counter has 12 bits; what is beyond them borrows from the next millisecond.
  if (counter > 0xfff) {
    counter = 0;
    lastMs += 1;
  } else lastMs = Math.max(nowMs, lastMs);
  const random = crypto.getRandomValues(new Uint8Array(8));
  random[0] = ((random[0] ?? 0) & 0x3f) | 0x80;
  const time = lastMs.toString(16).padStart(12, '0');
  const tail = [...random].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${tail.slice(0, 4)}-${tail.slice(4)}`;
}
