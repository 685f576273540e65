import { clock, wallNowMs } from '../base/clock.ts';
import type { HttpAnswer, HttpClient, HttpRequest } from '../http/client.ts';
import { failureOf } from '../http/failure.ts';
import { publish } from '../run/stats.ts';
import { isoTimestamp } from '../run/time.ts';
import { outcomeOf } from './answer.ts';
import type { Ledger } from './ledger.ts';

export interface RequestLogOptions {
  readonly ledger: Ledger;
  /** Origin of the service. */
  readonly endpoint: string;
  readonly monotonicMs: () => number;
}

/** What a request carries. */
export interface Load {
  readonly kind: 'multipart' | 'simple';
  readonly runs: number;
}

/** Sends the requests that carry runs, and keeps in the ledger what they tell of the service. */
export class RequestLog {
  readonly #options: RequestLogOptions;

  constructor(options: RequestLogOptions) {
    this.#options = options;
  }

  /** What the client answers or rejects with. */
  async send(client: HttpClient, load: Load, request: HttpRequest): Promise<HttpAnswer> {
    const { ledger, monotonicMs } = this.#options;
    ledger.counts.requests[load.kind]++;
    const sentAtMs = monotonicMs();
    try {
      const answer = await client.send(request);
      const outcome = outcomeOf(answer, load.runs, wallNowMs());
      const error = 'detail' in outcome ? outcome.detail : undefined;
      this.#take(load, request, monotonicMs() - sentAtMs, answer.status, error);
      return answer;
    } catch (thrown) {
      // What we break off ourselves says nothing of the service.
      if (request.signal?.aborted !== true) {
        this.#take(load, request, monotonicMs() - sentAtMs, undefined, failureOf(thrown).detail);
      }
      throw thrown;
    }
  }

  #take(load: Load, request: HttpRequest, durationMs: number, status: number | undefined, error: string | undefined) {
    const { ledger, endpoint } = this.#options;
    ledger.latencies.add(durationMs);
    if (error !== undefined) ledger.lastError = { at: isoTimestamp(clock.nowUs()), message: error };
    publish('runspan:request:end', () => ({ endpoint, ...load, status, error, durationMs, bytes: bytesOf(request) }));
  }
}

function bytesOf({ body = [] }: HttpRequest): number {
  return body.reduce((sum, chunk) => sum + Buffer.byteLength(chunk), 0);
}
