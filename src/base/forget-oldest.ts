/** Deletes the entries that were added first, until at most `max` are left. */
export function forgetOldest<Key>(known: Map<Key, unknown> | Set<Key>, max: number): void {
  for (const key of known.keys()) {
    if (known.size <= max) return;
    known.delete(key);
  }
}
