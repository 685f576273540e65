import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { clearTimer, setTimer } from '../../platform/timers.ts';
import type { Scope } from '../domain/query/query.ts';
import type { StoreChange } from './store.ts';

/** Minimum interval between log lines about deleted traces, in milliseconds. */
const NOTICE_INTERVAL_MS = 60_000;

/** A trace that has changed, and at least the names and ids of the projects of its changed runs, before and after. */
export interface ChangedTrace {
  readonly id: string;
  readonly projects: readonly string[];
}

export interface TenantChange extends Pick<StoreChange, 'forgotten'> {
  readonly tenant: string;
  readonly traces: readonly ChangedTrace[];
}

/** Reports changes to listeners. Logs how many traces the store deleted to stay within its limits. */
export class Subscribers {
  readonly #listeners = new Map<symbol, { readonly scope: Scope; readonly call: (change: StoreChange) => void }>();
  readonly #limits: string;
  #forgottenRuns = 0;
  #forgottenTraces = 0;
  #noticedAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** `limits` names the options that set the store's limits. */
  constructor(limits = '') {
    this.#limits = limits;
  }

  get tenants(): ReadonlySet<string> {
    return new Set([...this.#listeners.values()].map(({ scope }) => scope.tenant));
  }

  /** Whether a listener is limited to a project of this tenant. */
  isLimited(tenant: string): boolean {
    return [...this.#listeners.values()].some(({ scope }) => scope.tenant === tenant && scope.project !== undefined);
  }

  add(scope: Scope, call: (change: StoreChange) => void): () => void {
    const key = Symbol('subscription');
    this.#listeners.set(key, { scope, call });
    return () => {
      this.#listeners.delete(key);
    };
  }

  report({ tenant, traces, forgotten }: TenantChange): void {
    if (forgotten !== undefined) this.#notice(forgotten);
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
