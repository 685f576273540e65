import { HttpError } from './http-error.ts';

const WINDOW_MS = 60_000;

/** Limits how many posts and patches of runs each tenant can send to this receiver per minute. */
export class RunLimits {
  readonly #runsPerMinute: (tenant: string) => number | undefined;
  readonly #windows = new Map<string, { readonly endsAtMs: number; runs: number }>();
  /** Requests that began below the limit. An import stores its runs in several steps. */
  readonly #accepted = new WeakSet<object>();

  constructor(runsPerMinute: (tenant: string) => number | undefined) {
    this.#runsPerMinute = runsPerMinute;
  }

  /** Throws an HTTP 429 error if the tenant has reached its limit. A request that begins below the limit is accepted. */
  take(tenant: string, runs: number, request: object): void {
    const limit = this.#runsPerMinute(tenant);
    if (limit === undefined) return;
    const nowMs = performance.now();
    const known = this.#windows.get(tenant);
    const window = known !== undefined && nowMs < known.endsAtMs ? known : { endsAtMs: nowMs + WINDOW_MS, runs: 0 };
    this.#windows.set(tenant, window);
    if (window.runs >= limit && !this.#accepted.has(request)) {
      const retryAfter = `${Math.ceil((window.endsAtMs - nowMs) / 1_000)}`;
      throw new HttpError(429, `The limit is ${limit} runs per minute`, { 'retry-after': retryAfter });
    }
    this.#accepted.add(request);
    window.runs += runs;
  }
}
