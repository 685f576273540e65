import { clock, wallNowMs } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { ignoreErrors } from '../../base/guard.ts';
import { failureOf } from '../../http/failure.ts';
import { retryAfterMs } from '../../http/retry.ts';
import { bodyBytes, type HttpRequest, type HttpResponse, isKeyRefused, type Transport } from '../../http/transport.ts';
import { type Fields, fieldsOf } from '../../payload/fields.ts';
import { type DropReason, publish, type RequestKind } from '../../run/stats.ts';
import { isoTimestamp } from '../../run/time.ts';
import type { Ledger } from '../ledger.ts';
import type { Failure } from '../retry-policy.ts';
import { jsonIn, reasonIn, statusText } from './reason.ts';

/** The result of one attempt to send a run. `detail` is a log message, with the service's own words if there are any. */
export type Outcome =
  | { readonly kind: 'accepted'; readonly rejectedRuns?: number; readonly detail?: string }
  /** Status 409 for one run: the service has a run with this id, perhaps by the first try of a repeated request. */
  | { readonly kind: 'known'; readonly detail: string; readonly isRepeated: boolean }
  | { readonly kind: 'dropped'; readonly reason: DropReason; readonly detail: string }
  /** `afterMs` is the delay from the `Retry-After` header. `isTooLarge` is true if the status was 413. */
  | {
      readonly kind: 'failed';
      readonly failure: Failure;
      readonly status?: number;
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
  [401, 'the API key was rejected; if `apiKey` is a function, it can return a new one without a restart'],
  [402, 'the service requires payment'],
  [403, 'the API key, the path of the endpoint or the content of a run may be the cause'],
  [407, 'the proxy requires authentication'],
  [511, 'the network requires a login'],
]);

export const NO_ROUTE: ReadonlySet<number> = new Set([404, 405, 415, 501]);

const BUSY: ReadonlySet<number> = new Set([425, 429]);

/** Statuses that speak of the content of a request. A 413 is handled before. */
const INVALID: ReadonlySet<number> = new Set([400, 422]);

/** `fields` are those of the response's body. */
function outcomeOf(response: HttpResponse, fields: Fields, runs: number, nowMs: number, isOtlp: boolean): Outcome {
  const { status, headers, isKeyless = false } = response;
  if (status >= 200 && status < 300) return { kind: 'accepted', ...(isOtlp && rejectedIn(response, fields)) };
  const said = statusText(response, fields);
  // A 409 for a batch may mean that only some runs are stored.
  if (status === 409 && runs === 1) return { kind: 'known', detail: said, isRepeated: response.isRepeated === true };
  if (NO_ROUTE.has(status)) return { kind: 'unsupported', detail: said };
  const isMissingKey = isKeyless && isKeyRefused(status);
  const hint = isMissingKey ? 'no API key is set, and the service may require one' : hintOf(status);
  const detail = hint === undefined ? said : `${said}: ${hint}`;
  if (status === 413) return { kind: 'failed', failure: 'invalid', status, detail, isTooLarge: true };
  const afterMs = retryAfterMs(headers, nowMs);
  return { kind: 'failed', failure: failureOfStatus(status, afterMs !== undefined), status, detail, afterMs };
}

/** Reads an `ExportTraceServiceResponse`, which does not say which spans it rejects. Otherwise, its message is a warning. */
function rejectedIn(response: HttpResponse, fields: Fields): { rejectedRuns: number; detail: string } | undefined {
  const { partialSuccess } = fields;
  if (partialSuccess === undefined) return undefined;
  const { rejectedSpans } = fieldsOf(partialSuccess);
  // 64-bit integers are text in JSON.
  const isText = typeof rejectedSpans === 'string' && /^\d+$/.test(rejectedSpans);
  const spans = isText ? Number(rejectedSpans) : rejectedSpans;
  const reason = reasonIn({ partialSuccess }, response);
  const words = reason === undefined ? '' : `: "${reason}"`;
  if (typeof spans === 'number' && Number.isSafeInteger(spans) && spans > 0) {
    return { rejectedRuns: spans, detail: `the service rejected spans of a request (${spans})${words}` };
  }
  if (reason !== undefined) diagnostics.warnOnce('otlp warning', `the service accepted spans with a warning${words}`);
  return undefined;
}

function failureOfStatus(status: number, hasRetryAfter: boolean): Failure {
  // Some gateways add `Retry-After` to every 503, and some respond with 408 to large requests.
  if (status >= 500 || status < 200 || status === 408) return 'later';
  if (hasRetryAfter || BUSY.has(status)) return 'unavailable';
  return INVALID.has(status) ? 'invalid' : 'refused';
}

function outcomeOfError(thrown: unknown, { port }: URL): Outcome {
  const { detail, isUnsent } = failureOf(thrown);
  if (isUnsent) return { kind: 'failed', failure: 'unavailable', detail };
  // OpenTelemetry's port for gRPC, which speaks only HTTP/2.
  const hint = port === '4317' ? '; port 4317 is usually for gRPC, so use the port for HTTP, usually 4318' : '';
  return { kind: 'failed', failure: 'later', detail: detail + hint };
}

function hintOf(status: number): string | undefined {
  return status >= 300 && status < 400 ? 'redirects are not followed, check the endpoint' : HINTS.get(status);
}

/** A batch is halved until the run that cannot be encoded is alone. */
export function unencodable(runs: number, detail: string): Outcome {
  return runs === 1 ? { kind: 'dropped', reason: 'rejected', detail } : { kind: 'failed', failure: 'refused', detail };
}

/** The result of one request. If there is no response, `status` is undefined and `error` is the thrown error. */
export interface IngestResult {
  readonly outcome: Outcome;
  readonly status: number | undefined;
  readonly error: unknown;
}

/** Sends one request with runs. Never rejects. If the signal aborts, the outcome is `unsent`. */
export type Ingest = (kind: RequestKind, runs: number, request: HttpRequest) => Promise<IngestResult>;

/** Returns a function that also records the duration and the error of each request in the ledger. */
export function ingestWith(
  client: Transport,
  ledger: Ledger,
  url: URL,
  monotonicMs: () => number,
  fieldsIn: (response: HttpResponse) => Fields = jsonIn,
): Ingest {
  const { origin: endpoint } = url;
  return async (kind, runs, request) => {
    ledger.counts.requests[kind]++;
    const sentAtMs = monotonicMs();
    let result: IngestResult;
    try {
      const response = await client.send(request);
      warnOfWebPage(response);
      const fields = ignoreErrors(() => fieldsIn(response)) ?? {};
      const outcome = outcomeOf(response, fields, runs, wallNowMs(), kind === 'otlp');
      result = { outcome, status: response.status, error: undefined };
    } catch (error) {
      // Aborted requests are not recorded, because the service did not fail.
      if (request.signal?.aborted === true) return { outcome: UNSENT, status: undefined, error };
      result = { outcome: outcomeOfError(error, url), status: undefined, error };
    }
    const { outcome, status } = result;
    const durationMs = monotonicMs() - sentAtMs;
    const error = 'detail' in outcome ? outcome.detail : undefined;
    ledger.addRequest(durationMs);
    if (error !== undefined) ledger.lastError = { at: isoTimestamp(clock.nowUs()), message: error };
    publish('runspan:request:end', () => {
      return { endpoint, kind, runs, status, error, durationMs, bytes: bodyBytes(request.body) };
    });
    return result;
  };
}

function warnOfWebPage({ status, headers }: HttpResponse): void {
  if (status >= 300 || !/^text\/html\b/.test(String(headers['content-type']))) return;
  diagnostics.warnOnce(
    'web page',
    'the endpoint responded with a web page; check that the endpoint is the URL of the service',
  );
}
