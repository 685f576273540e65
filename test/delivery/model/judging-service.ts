import { delay } from '#src/platform/timers.ts';
import { arrivalsIn } from '../../support/arrivals.ts';
import { virtualClock } from '../../support/virtual-timers.ts';
import type { Scenario } from './liveness.ts';
import { type Answer, status, type WireRequest } from './service.ts';

/** What a service does with a request that it does not accept. `pause` is a 503 with `Retry-After`. */
export const REFUSALS = [
  ...[302, 400, 401, 403, 406, 408, 409, 413, 422, 451, 500, 503],
  ...['reset', 'timeout', 'pause'],
] as const;
export type Refusal = (typeof REFUSALS)[number];

const FLAPS_EVERY_MS: Partial<Record<Scenario['service'], number>> = {
  'flapping fast': 2_000,
  'flapping slowly': 30_000,
};

/** A service that judges content: it refuses each request with a run named `poison`. */
export class JudgingService {
  readonly #scenario: Scenario;
  readonly #latencyMs: number;
  readonly #random: () => number;
  /** Whether a flapping service still refuses requests. */
  isFlapping = true;
  isDown = false;
  requests = 0;
  emptyRequests = 0;
  readonly ended = new Set<string>();

  constructor(scenario: Scenario, latencyMs: number, random: () => number) {
    this.#scenario = scenario;
    this.#latencyMs = latencyMs;
    this.#random = random;
  }

  answer(request: WireRequest): Answer | Promise<Answer> {
    if (request.path === '/info') return status(404);
    this.requests++;
    const verdict = this.#judge(request);
    return this.#latencyMs === 0 ? verdict : this.#late(verdict);
  }

  #judge(request: WireRequest): Answer {
    const { service, refusal, isSimple } = this.#scenario;
    if (isSimple && request.path === '/runs/multipart') return status(405);
    const arrivals = arrivalsIn(request);
    if (arrivals.length === 0) this.emptyRequests++;
    const isRefused =
      this.isDown ||
      (service === 'gateway' && this.#random() < 0.1) ||
      (service === 'half' && this.#random() < 0.5) ||
      (this.isFlapping &&
        Math.floor(virtualClock.nowMs / (FLAPS_EVERY_MS[service] ?? virtualClock.nowMs + 1)) % 2 === 1) ||
      arrivals.some(({ name, id }) => name === 'poison' && !(refusal === 409 && this.ended.has(id)));
    if (isRefused) return answerOf(refusal);
    for (const { id, isEnded } of arrivals) if (isEnded) this.ended.add(id);
    return status(202);
  }

  async #late(verdict: Answer): Promise<Answer> {
    await delay(this.#latencyMs * (0.5 + this.#random()), undefined);
    return verdict;
  }
}

function answerOf(refusal: Refusal): Answer {
  if (refusal === 'timeout') return 'silence';
  if (refusal === 'pause') return status(503, { 'retry-after': '10' });
  return refusal === 'reset' ? 'reset' : status(refusal);
}
