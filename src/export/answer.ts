import { diagnostics } from '../base/diagnostics.ts';
import type { HttpAnswer } from '../http/client.ts';
import { failureOf } from '../http/failure.ts';
import { parseRetryAfter } from '../http/retry-policy.ts';
import type { Outcome } from './transport.ts';

/** Facts about a request and its response that, together with the status, determine the outcome. */
export interface ResponseContext {
  /** Number of runs in the request. */
  readonly runs: number;
  /** Whether the request carried no credentials. */
  readonly isKeyless?: boolean;
  /** Delay in milliseconds requested by `Retry-After`. */
  readonly afterMs?: number | undefined;
}

/**
 * Statuses that indicate that every request will be refused until the configuration or the service changes. The runs
 * are kept, and the endpoint is probed.
 */
const BLOCKED: ReadonlyMap<number, string> = new Map([
  [401, 'the API key was rejected'],
  [402, 'the service requires payment'],
  [403, 'the API key was rejected'],
  [407, 'the proxy asks for authentication'],
  [421, 'the request reached the wrong server'],
  [423, 'the service is locked'],
  [451, 'the service is blocked for legal reasons'],
  [499, 'a gateway closed the request'],
  [511, 'the network asks for a login'],
]);

/** Statuses that indicate that the service does not support the route. */
const NO_ROUTE: ReadonlySet<number> = new Set([404, 405, 415, 501]);

const RETRIED: ReadonlySet<number> = new Set([408, 425, 429]);

/** Decides the outcome of an ingestion request from the status of its response. */
export function outcomeOfStatus(status: number, { runs, isKeyless = false, afterMs }: ResponseContext): Outcome {
  const detail = `status ${status}`;
  if (status >= 200 && status < 300) return { kind: 'accepted' };
  if (status >= 300 && status < 400) {
    return { kind: 'misconfigured', detail: `${detail}: redirects are not followed, check the endpoint` };
  }
  const cause = BLOCKED.get(status);
  if (cause !== undefined) {
    const isMissingKey = isKeyless && (status === 401 || status === 403);
    const why = isMissingKey ? 'the service asks for an API key, and none is sent' : cause;
    return { kind: 'misconfigured', detail: `${detail}: ${why}` };
  }
  // An earlier attempt delivered the run, but its response was lost. Of a batch, it may have delivered only some runs.
  if (status === 409) return runs === 1 ? { kind: 'accepted', isRepetition: true } : { kind: 'invalid', detail };
  if (status === 400 || status === 422) return { kind: 'invalid', detail };
  if (status === 413) return { kind: 'too_large', detail };
  if (NO_ROUTE.has(status)) return { kind: 'unsupported', detail };
  if (status >= 400 && status < 500 && !RETRIED.has(status)) return { kind: 'dropped', reason: 'rejected', detail };
  return { kind: 'failed', detail, afterMs, isSuspect: status >= 500 && afterMs === undefined };
}

/** Returns the outcome of a request that received a response. `runs` is the number of runs in the request. */
export function outcomeOf(answer: HttpAnswer, runs: number, nowMs: number): Outcome {
  const afterMs = parseRetryAfter(header(answer, 'retry-after'), nowMs, header(answer, 'date'));
  return outcomeOfStatus(answer.status, { runs, isKeyless: answer.isKeyless ?? false, afterMs });
}

/** Returns the outcome of a request that received no response. */
export function outcomeOfError(thrown: unknown): Outcome {
  const { detail, isLasting, mayHaveArrived } = failureOf(thrown);
  return isLasting ? { kind: 'misconfigured', detail } : { kind: 'failed', detail, isSuspect: mayHaveArrived };
}

/** Warns if the endpoint responds with a web page, for example a login page or another website. */
export function noteWebPage(answer: HttpAnswer): void {
  if (answer.status >= 300 || !/^text\/html\b/.test(header(answer, 'content-type') ?? '')) return;
  diagnostics.warnOnce('web page', 'the endpoint answers with a web page; check that it is the address of the service');
}

function header(answer: HttpAnswer, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
