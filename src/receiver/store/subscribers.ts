import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import type { StoreChange } from './store.ts';

/** Minimum interval between log lines about deleted traces, in milliseconds. */
const NOTICE_INTERVAL_MS = 60_000;

export interface TenantChange extends StoreChange {
  readonly tenant: string;
}

/** Reports changes to the listeners of a tenant. Logs how many traces the store deleted to stay within its limits. */
export class Subscribers {
  readonly #listeners = new Map<symbol, { readonly tenant: string; readonly call: (change: StoreChange) => void }>();
  readonly #limits: string;
  #forgottenRuns = 0;
  #forgottenTraces = 0;
  #noticedAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** `limits` names the options that set the store's limits. */
  constructor(limits = '') {
    this.#limits = limits;
  }

  /** The tenants that have listeners. */
  get tenants(): ReadonlySet<string> {
    return new Set([...this.#listeners.values()].map(({ tenant }) => tenant));
  }

  add(tenant: string, call: (change: StoreChange) => void): () => void {
    const key = Symbol('subscription');
    this.#listeners.set(key, { tenant, call });
    return () => {
      this.#listeners.delete(key);
    };
  }

  report({ tenant, ...change }: TenantChange): void {
    if (change.forgotten !== undefined) this.#notice(change.forgotten);
    for (const listener of this.#listeners.values()) {
      if (listener.tenant !== tenant) continue;
      try {
        listener.call(change);
      } catch (error) {
        diagnostics.error(`a listener of the receiver's store failed: ${messageOf(error)}`);
      }
    }
  }

  #notice({ runs, traces }: NonNullable<StoreChange['forgotten']>): void {
    this.#forgottenRuns += runs;
    this.#forgottenTraces += traces;
    const waitMs = this.#noticedAtMs + NOTICE_INTERVAL_MS - performance.now();
    if (waitMs <= 0) this.logDeleted();
    else this.#timer ??= setTimer(() => this.logDeleted(), waitMs).unref();
  }

  logDeleted(): void {
    clearTimer(this.#timer);
    this.#timer = undefined;
    if (this.#forgottenTraces === 0) return;
    const [traceCount, runCount] = [count(this.#forgottenTraces, 'trace'), count(this.#forgottenRuns, 'run')];
    diagnostics.warn(
      `the receiver's store has deleted ${traceCount} with ${runCount}, the oldest first, to stay within ${this.#limits}`,
    );
    this.#forgottenRuns = 0;
    this.#forgottenTraces = 0;
    this.#noticedAtMs = performance.now();
  }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
