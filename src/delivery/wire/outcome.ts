import { clock, wallNowMs } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { failureOf } from '../../http/failure.ts';
import { parseRetryAfter } from '../../http/retry.ts';
import { bodyBytes, type HttpRequest, type HttpResponse, isKeyRefused, type Transport } from '../../http/transport.ts';
import { type DropReason, publish, type RequestKind } from '../../run/stats.ts';
import { isoTimestamp } from '../../run/time.ts';
import type { Ledger } from '../ledger.ts';
import type { Failure } from '../retry-policy.ts';

/** The result of one attempt to send a run. `detail` is a log message without request or response content. */
export type Outcome =
  /** The service has stored the run. `isRepetition` is true if the status was 409. */
  | { readonly kind: 'accepted'; readonly isRepetition?: true }
  | { readonly kind: 'dropped'; readonly reason: DropReason; readonly detail: string }
  /** `afterMs` is the delay from the `Retry-After` header. `isTooLarge` is true if the status was 413. */
  | {
      readonly kind: 'failed';
      readonly failure: Failure;
      readonly detail: string;
      readonly afterMs?: number | undefined;
      readonly isTooLarge?: true;
    }
  /** The service has no such route. */
  | { readonly kind: 'unsupported'; readonly detail: string }
  /** The run was not sent, because the exporter closed or an earlier request failed. */
  | { readonly kind: 'unsent' };

export const UNSENT: Outcome = { kind: 'unsent' };

/** The outcome if sending threw an error, which is a bug in this library. */
export const FAILED: Outcome = { kind: 'failed', failure: 'later', detail: 'the batch could not be sent' };

/** What users check first after these status codes. */
const HINTS: ReadonlyMap<number, string> = new Map([
  [401, 'the API key was rejected'],
  [402, 'the service requires payment'],
  [403, 'the API key, or the content of a run, was rejected'],
  [407, 'the proxy requires authentication'],
  [421, 'the request reached the wrong server'],
  [423, 'the service is locked'],
  [451, 'the service is blocked for legal reasons'],
  [499, 'a gateway closed the request'],
  [511, 'the network requires a login'],
]);

export const NO_ROUTE: ReadonlySet<number> = new Set([404, 405, 415, 501]);

const BUSY: ReadonlySet<number> = new Set([425, 429]);

export const ACCEPTED: Outcome = { kind: 'accepted' };

export function outcomeOf({ status, headers, isKeyless = false }: HttpResponse, runs: number, nowMs: number): Outcome {
  if (status >= 200 && status < 300) return ACCEPTED;
  // A 409 for a single run means that an earlier attempt delivered the run. A 409 for a batch may mean that only some
  // runs are stored.
  if (status === 409 && runs === 1) return { kind: 'accepted', isRepetition: true };
  if (NO_ROUTE.has(status)) return { kind: 'unsupported', detail: `status ${status}` };
  const isMissingKey = isKeyless && isKeyRefused(status);
  const hint = isMissingKey ? 'the service requires an API key, but none is set' : hintOf(status);
  const detail = hint === undefined ? `status ${status}` : `status ${status}: ${hint}`;
  if (status === 413) return { kind: 'failed', failure: 'refused', detail, isTooLarge: true };
  const afterMs = parseRetryAfter(first(headers['retry-after']), nowMs, first(headers.date));
  return { kind: 'failed', failure: failureOfStatus(status, afterMs !== undefined), detail, afterMs };
}

function failureOfStatus(status: number, hasRetryAfter: boolean): Failure {
  // Some gateways add `Retry-After` to every 503, and some respond with 408 to large requests.
  if (status >= 500 || status < 200 || status === 408) return 'later';
  return hasRetryAfter || BUSY.has(status) ? 'unavailable' : 'refused';
}

function outcomeOfError(thrown: unknown): Outcome {
  const { detail, isUnsent } = failureOf(thrown);
  return { kind: 'failed', failure: isUnsent ? 'unavailable' : 'later', detail };
}

function hintOf(status: number): string | undefined {
  return status >= 300 && status < 400 ? 'redirects are not followed, check the endpoint' : HINTS.get(status);
}

/** A batch is halved until the run that cannot be encoded is alone. */
export function unencodable(runs: number, detail: string): Outcome {
  return runs === 1 ? { kind: 'dropped', reason: 'rejected', detail } : { kind: 'failed', failure: 'refused', detail };
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** The result of one request. If there is no response, `status` is undefined and `error` is the thrown error. */
export interface IngestResult {
  readonly outcome: Outcome;
  readonly status: number | undefined;
  readonly error: unknown;
  readonly response?: HttpResponse;
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
  async send(kind: RequestKind, runs: number, request: HttpRequest): Promise<IngestResult> {
    this.#ledger.counts.requests[kind]++;
    const sentAtMs = this.#monotonicMs();
    let result: IngestResult;
    try {
      const response = await this.#client.send(request);
      warnOfWebPage(response);
      result = { outcome: outcomeOf(response, runs, wallNowMs()), status: response.status, error: undefined, response };
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

function warnOfWebPage({ status, headers }: HttpResponse): void {
  if (status >= 300 || !/^text\/html\b/.test(String(headers['content-type']))) return;
  diagnostics.warnOnce(
    'web page',
    'the endpoint responded with a web page; check that the endpoint is the URL of the service',
  );
}
