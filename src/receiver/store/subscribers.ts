import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import type { RunCounts, Scope } from '../domain/query/query.ts';
import type { StoreChange } from './store.ts';

/** Minimum interval between log lines about deleted traces, in milliseconds. */
const NOTICE_INTERVAL_MS = 60_000;

/** A trace that has changed, and at least the names and ids of the projects of its changed runs, before and after. */
export interface ChangedTrace {
  readonly id: string;
  readonly projects: readonly string[];
}

/** The option by which a store deletes its oldest traces. Deletions by age are logged at `info`, by size at `warn`. */
export interface Limit {
  readonly option: string;
  readonly level: 'info' | 'warn';
}

export interface TenantChange extends Pick<StoreChange, 'forgotten'> {
  readonly tenant: string;
  /** The limit by which the store has deleted what `forgotten` counts. */
  readonly limit?: Limit;
  readonly traces: readonly ChangedTrace[];
}

/** Reports changes to listeners. Logs how many traces the store deleted for each limit. */
export class Subscribers {
  readonly #listeners = new Map<symbol, { readonly scope: Scope; readonly call: (change: StoreChange) => void }>();
  readonly #forgotten = new Map<string, RunCounts & Limit>();
  #noticedAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  get tenants(): ReadonlySet<string> {
    return new Set([...this.#listeners.values()].map(({ scope }) => scope.tenant));
  }

  isLimited(tenant: string): boolean {
    return [...this.#listeners.values()].some(({ scope }) => scope.tenant === tenant && scope.project !== undefined);
  }

  add(scope: Scope, call: (change: StoreChange) => void): () => void {
    const key = Symbol('subscription');
    this.#listeners.set(key, { scope, call });
    return () => void this.#listeners.delete(key);
  }

  report({ tenant, traces, forgotten, limit }: TenantChange): void {
    if (forgotten !== undefined && limit !== undefined) this.#notice(forgotten, limit);
    for (const { scope, call } of this.#listeners.values()) {
      if (scope.tenant !== tenant) continue;
      const { project } = scope;
      const own = project === undefined ? traces : traces.filter(({ projects }) => projects.includes(project));
      if (own.length === 0) continue;
      // The counts include the traces of other projects.
      const counts = project === undefined && forgotten !== undefined && { forgotten };
      try {
        call({ traceIds: [...new Set(own.map(({ id }) => id))], ...counts });
      } catch (error) {
        diagnostics.error(`a listener of the receiver's store failed: ${messageOf(error)}`);
      }
    }
  }

  #notice({ runs, traces }: RunCounts, limit: Limit): void {
    const earlier = this.#forgotten.get(limit.option) ?? { runs: 0, traces: 0 };
    this.#forgotten.set(limit.option, { ...limit, runs: earlier.runs + runs, traces: earlier.traces + traces });
    const waitMs = this.#noticedAtMs + NOTICE_INTERVAL_MS - performance.now();
    if (waitMs <= 0) this.logDeleted();
    else this.#timer ??= setTimer(() => this.logDeleted(), waitMs).unref();
  }

  logDeleted(): void {
    clearTimer(this.#timer);
    this.#timer = undefined;
    for (const { option, level, runs, traces } of this.#forgotten.values()) {
      const what = `${count(traces, 'trace')} with ${count(runs, 'run')}`;
      const line = `the receiver's store has deleted ${what}, the oldest first, to stay within ${option}`;
      if (level === 'warn') diagnostics.warn(line);
      else diagnostics.info(line);
      this.#noticedAtMs = performance.now();
    }
    this.#forgotten.clear();
  }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
