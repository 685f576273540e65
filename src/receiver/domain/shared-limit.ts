/** Time for which a refusal keeps the other tenants at half, in milliseconds: refused clients try again within it. */
const REFUSED_MS = 60_000;

/**
 * A limit that all tenants share. A tenant may use all of it, unless another tenant uses some or was refused in the last
 * minute: then it gets no more than half, rounded up. What a tenant uses already stays until it is released.
 *
 * A request whose tenant is not known has the tenant `''`. It counts towards the limit, and keeps no tenant at half.
 */
export class SharedLimit {
  readonly #max: number;
  readonly #nowMs: () => number;
  /** What each tenant uses, without the tenants that use nothing. */
  readonly #used = new Map<string, number>();
  /** Time of the last refusal of each tenant, oldest first. */
  readonly #refusedMs = new Map<string, number>();
  #total = 0;

  constructor(max: number, nowMs: () => number = () => performance.now()) {
    this.#max = max;
    this.#nowMs = nowMs;
  }

  get total(): number {
    return this.#total;
  }

  usedBy(tenant: string): number {
    return this.#used.get(tenant) ?? 0;
  }

  /** Uses `amount` if the tenant may, see `admits`. */
  take(tenant: string, amount: number, held = 0): boolean {
    const isAdmitted = this.admits(tenant, amount, held);
    if (isAdmitted) this.add(tenant, amount);
    return isAdmitted;
  }

  /**
   * Returns whether a tenant may use `amount` more. A tenant that may not counts as refused. `held` is what the same
   * request uses already: a tenant's only request may use more than half, or it would be refused whenever it is sent.
   */
  admits(tenant: string, amount: number, held = 0): boolean {
    const own = this.usedBy(tenant);
    const isWithinHalf = own === held || own + amount <= Math.ceil(this.#max / 2);
    if (this.#total + amount <= this.#max && (isWithinHalf || !this.#isWantedByOthers(tenant))) return true;
    this.#refusedMs.delete(tenant);
    this.#refusedMs.set(tenant, this.#nowMs());
    return false;
  }

  /** Adds to what a tenant uses, whether it may or not. Releases a negative amount. */
  add(tenant: string, amount: number): void {
    const own = this.usedBy(tenant) + amount;
    this.#total += amount;
    if (own === 0) this.#used.delete(tenant);
    else this.#used.set(tenant, own);
  }

  /** Sets what all tenants use, if it is counted elsewhere. */
  count(tenants: Iterable<string>): void {
    this.#used.clear();
    this.#total = 0;
    for (const tenant of tenants) this.add(tenant, 1);
  }

  #isWantedByOthers(tenant: string): boolean {
    const sinceMs = this.#nowMs() - REFUSED_MS;
    for (const [refused, ms] of this.#refusedMs) {
      if (ms > sinceMs) break;
      this.#refusedMs.delete(refused);
    }
    const isOther = (name: string): boolean => name !== tenant && name !== '';
    return [...this.#used.keys(), ...this.#refusedMs.keys()].some(isOther);
  }
}
