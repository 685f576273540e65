const CACHE_MS = 1_000;
/** Maximum number of cached values. At the maximum, the cache is cleared. */
const CACHED_MAX = 1_000;

/** Caches what was read from the store, by default for a second. Another receiver may change it meanwhile. */
export class ReadCache<Value> {
  readonly #cached = new Map<string, { readonly value: Promise<Value>; readonly readAtMs: number }>();

  /** Returns the cached value, or else that of `read`, which is called with the expired one. */
  read(
    id: string,
    read: (expired: Promise<Value> | undefined) => Promise<Value>,
    ageMaxMs: number = CACHE_MS,
  ): Promise<Value> {
    const cached = this.#cached.get(id);
    if (cached !== undefined && performance.now() - cached.readAtMs < ageMaxMs) return cached.value;
    if (this.#cached.size >= CACHED_MAX) this.#cached.clear();
    const value = read(cached?.value);
    this.#cached.set(id, { value, readAtMs: performance.now() });
    value.catch(() => this.#cached.delete(id));
    return value;
  }

  delete(id: string): void {
    this.#cached.delete(id);
  }
}
