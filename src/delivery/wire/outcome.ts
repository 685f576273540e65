import { clock, wallNowMs } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { failureOf } from '../../http/failure.ts';
import { parseRetryAfter } from '../../http/retry.ts';
import { bodyBytes, type HttpAnswer, type HttpRequest, type Transport } from '../../http/transport.ts';
import { type DropReason, publish } from '../../run/stats.ts';
import { isoTimestamp } from '../../run/time.ts';
import type { Ledger } from '../ledger.ts';

/** The result of one attempt to send a run. `detail` is a log message without request or response content. */
export type Outcome =
  /** The service has stored the run. `isRepetition` is true if the status was 409. */
  | { readonly kind: 'accepted'; readonly isRepetition?: true }
  | { readonly kind: 'dropped'; readonly reason: DropReason; readonly detail: string }
  /**
   * A later attempt may succeed. `afterMs` is the delay from the `Retry-After` header. `isSuspect` is true if a run in
   * the request may have caused the failure.
   */
  | {
      readonly kind: 'failed';
      readonly detail: string;
      readonly afterMs?: number | undefined;
      readonly isSuspect?: boolean;
    }
  /** The service refuses every request until its state or the configuration changes. */
  | { readonly kind: 'misconfigured'; readonly detail: string }
  /** The service has no such route. */
  | { readonly kind: 'unsupported'; readonly detail: string }
  /** The batch, or a run that was sent alone, is too large for the service. */
  | { readonly kind: 'too_large'; readonly detail: string }
  /** At least one run in the batch is malformed or already stored. */
  | { readonly kind: 'invalid'; readonly detail: string }
  /** The run was not sent, because the exporter closed or an earlier request failed. */
  | { readonly kind: 'unsent' };

export const UNSENT: Outcome = { kind: 'unsent' };

/** Status codes for problems that affect every request, such as a wrong API key. The runs are kept. */
const BLOCKED: ReadonlyMap<number, string> = new Map([
  [401, 'the API key was rejected'],
  [402, 'the service requires payment'],
  [403, 'the API key was rejected'],
  [407, 'the proxy requires authentication'],
  [421, 'the request reached the wrong server'],
  [423, 'the service is locked'],
  [451, 'the service is blocked for legal reasons'],
  [499, 'a gateway closed the request'],
  [511, 'the network requires a login'],
]);

const NO_ROUTE: ReadonlySet<number> = new Set([404, 405, 415, 501]);

const RETRIED: ReadonlySet<number> = new Set([408, 425, 429]);

const ACCEPTED: Outcome = { kind: 'accepted' };

export function outcomeOf({ status, headers, isKeyless = false }: HttpAnswer, runs: number, nowMs: number): Outcome {
  const detail = `status ${status}`;
  if (status >= 200 && status < 300) return ACCEPTED;
  if (status >= 300 && status < 400) {
    return { kind: 'misconfigured', detail: `${detail}: redirects are not followed, check the endpoint` };
  }
  const cause = BLOCKED.get(status);
  if (cause !== undefined) {
    const isMissingKey = isKeyless && (status === 401 || status === 403);
    const why = isMissingKey ? 'the service requires an API key, but none is set' : cause;
    return { kind: 'misconfigured', detail: `${detail}: ${why}` };
  }
  // A 409 for a single run means that an earlier attempt delivered the run. A 409 for a batch may mean that only some
  // runs are stored.
  if (status === 409) return runs === 1 ? { kind: 'accepted', isRepetition: true } : { kind: 'invalid', detail };
  if (status === 400 || status === 422) return { kind: 'invalid', detail };
  if (status === 413) return { kind: 'too_large', detail };
  if (NO_ROUTE.has(status)) return { kind: 'unsupported', detail };
  if (status >= 400 && status < 500 && !RETRIED.has(status)) return { kind: 'dropped', reason: 'rejected', detail };
  const afterMs = parseRetryAfter(first(headers['retry-after']), nowMs, first(headers.date));
  return { kind: 'failed', detail, afterMs, isSuspect: status >= 500 && afterMs === undefined };
}

function outcomeOfError(thrown: unknown): Outcome {
  const { detail, isLasting, mayHaveArrived } = failureOf(thrown);
  return isLasting ? { kind: 'misconfigured', detail } : { kind: 'failed', detail, isSuspect: mayHaveArrived };
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** The result of one request. If there is no response, `status` is undefined and `error` is the thrown error. */
export interface IngestResult {
  readonly outcome: Outcome;
  readonly status: number | undefined;
  readonly error: unknown;
}

/** Sends requests with runs, and records each request's duration and error in the ledger. */
export class IngestClient {
  readonly #client: Transport;
  readonly #ledger: Ledger;
  readonly #endpoint: string;
  readonly #monotonicMs: () => number;

  constructor(client: Transport, ledger: Ledger, endpoint: string, monotonicMs: () => number) {
    this.#client = client;
    this.#ledger = ledger;
    this.#endpoint = endpoint;
    this.#monotonicMs = monotonicMs;
  }

  /** Sends one request and never rejects. If the signal aborts, the outcome is `unsent`. */
  async send(kind: 'multipart' | 'simple', runs: number, request: HttpRequest): Promise<IngestResult> {
    this.#ledger.counts.requests[kind]++;
    const sentAtMs = this.#monotonicMs();
    let result: IngestResult;
    try {
      const answer = await this.#client.send(request);
      warnOfWebPage(answer);
      result = { outcome: outcomeOf(answer, runs, wallNowMs()), status: answer.status, error: undefined };
    } catch (error) {
      // Aborted requests are not recorded, because the service did not fail.
      if (request.signal?.aborted === true) return { outcome: UNSENT, status: undefined, error };
      result = { outcome: outcomeOfError(error), status: undefined, error };
    }
    const { outcome, status } = result;
    const durationMs = this.#monotonicMs() - sentAtMs;
    const error = 'detail' in outcome ? outcome.detail : undefined;
    this.#ledger.addRequest(durationMs);
    if (error !== undefined) this.#ledger.lastError = { at: isoTimestamp(clock.nowUs()), message: error };
    const endpoint = this.#endpoint;
    publish('runspan:request:end', () => {
      return { endpoint, kind, runs, status, error, durationMs, bytes: bodyBytes(request.body) };
    });
    return result;
  }
}

function warnOfWebPage({ status, headers }: HttpAnswer): void {
  if (status >= 300 || !/^text\/html\b/.test(String(headers['content-type']))) return;
  diagnostics.warnOnce(
    'web page',
    'the endpoint responded with a web page; check that the endpoint is the URL of the service',
  );
}
