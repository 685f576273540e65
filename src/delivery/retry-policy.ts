import type { Tuning } from '../config/limits.ts';
import { backoffMs, probeDelayMs } from '../http/retry.ts';

/**
 * A lone run is dropped at this number of strikes. A service that is overloaded refuses requests at random with 5xx, so
 * more of these failures are needed before a run is at fault.
 */
const STRIKES_MAX = { refused: 3, invalid: 3, later: 8, unavailable: Number.POSITIVE_INFINITY } as const;

/** The endpoint closes after this many failures of lone runs in a row, without an accepted request in between. */
const LONE_FAILURES_MAX = 10;

/** Maximum time between two probes of an endpoint that refuses requests, in milliseconds. */
const PROBE_DELAY_MAX_MS = 300_000;

/** Maximum delay of a probe while a flush waits, in milliseconds. */
export const FLUSH_DELAY_MS: Readonly<Record<Failure, number>> = {
  later: 500,
  unavailable: 500,
  refused: 1_000,
  invalid: 1_000,
};

/**
 * How a request failed:
 *
 * - `later`: status 5xx or 408, or no response. The endpoint or a run may be the cause.
 * - `unavailable`: status 425 or 429, another 4xx with a `Retry-After` header, or no connection. The endpoint is the cause.
 * - `invalid`: status 400, 413 or 422. The content is the likelier cause, so less evidence against the run is needed.
 * - `refused`: every other status. A run or the endpoint is the cause, and no status tells which.
 */
export type Failure = 'later' | 'unavailable' | 'refused' | 'invalid';

/** Whether the service has accepted a request that was sent after the first or the last failure of a batch. */
export type Evidence = 'none' | 'since first' | 'since last';

/** The evidence on which a decision is based. */
export interface FailedRequest {
  readonly failure: Failure;
  readonly runs: number;
  readonly evidence: Evidence;
  /** Earlier failures of a lone run. Failures of a batch do not count. */
  readonly strikes: number;
  /** Earlier failures of lone runs since the last accepted request. */
  readonly loneFailures: number;
  readonly isClosed: boolean;
}

/**
 * What happens after a failed request. A halved batch is sent again at once. Waiting runs are sent again when a later
 * request is accepted, or as a probe.
 */
export interface Decision {
  readonly runs: 'halve' | 'wait' | 'drop';
  readonly strikes: number;
  readonly endpoint: 'unchanged' | 'counted' | 'closed';
}

type Row = readonly [
  failure: Failure,
  size: 'one' | 'many',
  evidence: Evidence | 'any',
  fate: 'halve' | 'strike' | 'wait',
  endpoint: Decision['endpoint'],
];

/** The first matching row decides. `invalid` is also `refused`. Halving needs no evidence, dropping and opening do. */
const TABLE: readonly Row[] = [
  ['invalid', 'one', 'since first', 'strike', 'counted'],
  ['refused', 'many', 'any', 'halve', 'unchanged'],
  ['refused', 'one', 'since last', 'strike', 'unchanged'],
  ['refused', 'one', 'any', 'wait', 'counted'],
  ['later', 'many', 'none', 'wait', 'closed'],
  ['later', 'many', 'any', 'halve', 'unchanged'],
  ['later', 'one', 'since last', 'strike', 'unchanged'],
  ['later', 'one', 'since first', 'wait', 'counted'],
  ['later', 'one', 'none', 'wait', 'closed'],
  ['unavailable', 'one', 'any', 'wait', 'closed'],
  ['unavailable', 'many', 'any', 'wait', 'closed'],
];

/** Decides what happens to the runs of a failed request, and to the endpoint. */
export function decide({ failure, runs, evidence, strikes, loneFailures, isClosed }: FailedRequest): Decision {
  const size = runs === 1 ? 'one' : 'many';
  // While the endpoint is closed, it may also be the cause of an invalid request.
  const refusals = isClosed ? ['refused'] : ['invalid', 'refused'];
  const failures = failure === 'invalid' ? refusals : [failure];
  const [, , , fate, effect] = TABLE.find(
    ([f, s, e]) => failures.includes(f) && s === size && ['any', evidence].includes(e),
  ) as Row;
  const isFirst = strikes === 0 && size === 'one' && (failure === 'refused' || failure === 'later');
  const struck = fate === 'strike' || isFirst ? strikes + 1 : strikes;
  const isLast = effect === 'counted' && (isClosed || loneFailures + 1 >= LONE_FAILURES_MAX);
  return {
    runs: fate !== 'strike' ? fate : struck >= STRIKES_MAX[failure] ? 'drop' : 'wait',
    strikes: struck,
    endpoint: isLast ? 'closed' : effect,
  };
}

export type BackOff = Pick<Tuning, 'retryDelayMs' | 'retryDelayMaxMs'> & { readonly random: () => number };

/** Returns the delay before the next probe, in milliseconds. `probes` have failed since the last accepted request. */
export function delayMs(failure: Failure, probes: number, { random, retryDelayMs, retryDelayMaxMs }: BackOff): number {
  if (isRefusal(failure)) return probeDelayMs(probes, PROBE_DELAY_MAX_MS);
  return backoffMs(probes, random(), retryDelayMs, retryDelayMaxMs);
}

/** Whether the same request would fail again until the run or the endpoint changes. */
export function isRefusal(failure: Failure): boolean {
  return failure === 'refused' || failure === 'invalid';
}

/**
 * Returns the delay until an `invalid` run is sent again while a flush waits, in milliseconds. Applies if the service has
 * accepted another request after the first failure.
 */
export function againMs(strikes: number): number {
  return strikes < STRIKES_MAX.invalid - 1 ? 250 : 1_000;
}
