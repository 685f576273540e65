import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { wallNowMs } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { HttpAnswer, HttpClient } from '../http/client.ts';
import { isBreak } from '../http/failure.ts';
import { noteWebPage, outcomeOf, outcomeOfError } from './answer.ts';
import type { Item } from './delivery.ts';
import { multipartBody } from './multipart.ts';
import type { Pace } from './pace.ts';
import type { RequestLog } from './request-log.ts';
import type { ServiceInfo } from './service-info.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

const gzipped = promisify(gzip);

/** The cheapest level: JSON shrinks to a fifth with it already. */
const GZIP_LEVEL = 1;

/** A connection that breaks while less is sent broke for another reason. */
const LARGE_BYTES = 1024 * 1024;

/** So many breaks of large uploads are taken for a gateway that refuses their size and does not wait to say so. */
const BREAKS_MAX = 2;

/** Sends a batch as one `POST /runs/multipart`. */
export class MultipartTransport implements Transport {
  readonly #client: HttpClient;
  readonly #info: ServiceInfo;
  readonly #pace: Pace;
  readonly #requests: RequestLog;
  /** Uploads of a batch that broke off, by its first record. */
  readonly #breaks = new WeakMap<Item, number>();

  constructor(client: HttpClient, info: ServiceInfo, pace: Pace, requests: RequestLog) {
    this.#client = client;
    this.#info = info;
    this.#pace = pace;
    this.#requests = requests;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    if (this.#info.refusesMultipart()) {
      yield { items, outcome: { kind: 'unsupported', detail: 'the service says so' } };
      return;
    }
    const boundary = `runspan-${randomBytes(16).toString('hex')}`;
    let chunks: readonly Uint8Array[];
    try {
      const laid = multipartBody(items, boundary, signal);
      // As a rule it is on its way in this very tick, while the processor still has it at hand.
      chunks = laid instanceof Promise ? await laid : laid;
    } catch (thrown) {
      signal.throwIfAborted();
      // A record that cannot be laid is at fault itself; the others have to be told from it.
      yield { items, outcome: { kind: 'invalid', detail: messageOf(thrown) } };
      return;
    }
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    try {
      const answer = await this.#post(items.length, boundary, chunks, signal);
      yield { items, outcome: this.#outcomeOf(items, answer, bytes) };
    } catch (thrown) {
      yield { items, outcome: this.#outcomeOfBreak(items, thrown, bytes) };
    }
  }

  async #post(runs: number, boundary: string, chunks: readonly Uint8Array[], signal: AbortSignal): Promise<HttpAnswer> {
    // The halves of a batch come one after the other, and the first may have brought a pause.
    if (this.#pace.remainingMs > 0) await this.#pace.waitOut(signal);
    const zipped = this.#info.takesGzip ? await gzipped(Buffer.concat(chunks), { level: GZIP_LEVEL }) : undefined;
    const load = { kind: 'multipart', runs } as const;
    const answer = await this.#requests.send(this.#client, load, {
      method: 'POST',
      path: '/runs/multipart',
      headers: {
        'content-type': `multipart/form-data; boundary=${boundary}`,
        ...(zipped && { 'content-encoding': 'gzip' }),
      },
      body: zipped === undefined ? chunks : [zipped],
      needsStatusOnly: true,
      signal,
    });
    if (answer.status !== 415 || zipped === undefined) return answer;
    this.#info.refuseGzip();
    return this.#post(runs, boundary, chunks, signal);
  }

  #outcomeOf(items: readonly Item[], answer: HttpAnswer, bytes: number): Outcome {
    noteWebPage(answer);
    const outcome = outcomeOf(answer, items.length, wallNowMs());
    diagnostics.debug(`${items.length} records sent over multipart: ${outcome.kind}`);
    // A single run that is too large says nothing of batches.
    if (outcome.kind === 'too_large' && items.length > 1) this.#info.limit.refused(bytes);
    if (outcome.kind === 'accepted') this.#info.limit.accepted(bytes);
    return outcome;
  }

  /** A single run is not taken for too large: it would lose its payloads to a network that fails. */
  #outcomeOfBreak(items: readonly Item[], thrown: unknown, bytes: number): Outcome {
    const outcome = outcomeOfError(thrown);
    const [first] = items;
    if (first === undefined || items.length === 1 || bytes < LARGE_BYTES || !isBreak(thrown)) return outcome;
    const breaks = (this.#breaks.get(first) ?? 0) + 1;
    this.#breaks.set(first, breaks);
    if (breaks < BREAKS_MAX) return outcome;
    this.#breaks.delete(first);
    this.#info.limit.refused(bytes);
    return { kind: 'too_large', detail: `the connection broke ${BREAKS_MAX} times while ${bytes} bytes were sent` };
  }
}
