import { clock, wallNowMs } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import type { HttpAnswer, HttpClient, HttpRequest } from '../http/client.ts';
import { publish } from '../run/stats.ts';
import { isoTimestamp } from '../run/time.ts';
import type { Ledger } from './ledger.ts';
import { type Outcome, outcomeOf, outcomeOfError } from './outcome.ts';

/** The result of one request. `status` is undefined if no response arrived; `error` then has the reason. */
export interface IngestResult {
  readonly outcome: Outcome;
  readonly status: number | undefined;
  readonly error: unknown;
}

/** Sends requests that carry runs. Records their number, duration and last error in the ledger. */
export class IngestClient {
  readonly #client: HttpClient;
  readonly #ledger: Ledger;
  /** Origin of the service. */
  readonly #endpoint: string;
  readonly #monotonicMs: () => number;

  constructor(client: HttpClient, ledger: Ledger, endpoint: string, monotonicMs: () => number) {
    this.#client = client;
    this.#ledger = ledger;
    this.#endpoint = endpoint;
    this.#monotonicMs = monotonicMs;
  }

  /** Never rejects. The outcome is `unsent` if the request was aborted by its signal. */
  async send(kind: 'multipart' | 'simple', runs: number, request: HttpRequest): Promise<IngestResult> {
    this.#ledger.counts.requests[kind]++;
    const sentAtMs = this.#monotonicMs();
    let result: IngestResult;
    try {
      const answer = await this.#client.send({ ...request, needsStatusOnly: true });
      warnOfWebPage(answer);
      result = { outcome: outcomeOf(answer, runs, wallNowMs()), status: answer.status, error: undefined };
    } catch (error) {
      // A request that the exporter aborted says nothing about the service.
      if (request.signal?.aborted === true) return { outcome: ABORTED, status: undefined, error };
      result = { outcome: outcomeOfError(error), status: undefined, error };
    }
    const { outcome, status } = result;
    const durationMs = this.#monotonicMs() - sentAtMs;
    const error = 'detail' in outcome ? outcome.detail : undefined;
    this.#ledger.latencies.add(durationMs);
    if (error !== undefined) this.#ledger.lastError = { at: isoTimestamp(clock.nowUs()), message: error };
    const endpoint = this.#endpoint;
    publish('runspan:request:end', () => {
      return { endpoint, kind, runs, status, error, durationMs, bytes: bodyBytes(request) };
    });
    return result;
  }
}

const ABORTED: Outcome = { kind: 'unsent', detail: 'the exporter was closed' };

/** A web page usually means a login page or another website. */
function warnOfWebPage({ status, headers }: HttpAnswer): void {
  if (status >= 300 || !/^text\/html\b/.test(String(headers['content-type']))) return;
  diagnostics.warnOnce('web page', 'the endpoint answers with a web page; check that it is the address of the service');
}

function bodyBytes({ body = [] }: HttpRequest): number {
  let bytes = 0;
  for (const chunk of body) bytes += Buffer.byteLength(chunk);
  return bytes;
}
