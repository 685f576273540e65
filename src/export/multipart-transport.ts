import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import type { HttpClient } from '../http/client.ts';
import { noteWebPage, outcomeOf } from './answer.ts';
import type { Item } from './delivery.ts';
import { multipartBody } from './multipart.ts';
import type { Pace } from './pace.ts';
import type { RequestLog } from './request-log.ts';
import type { ServiceInfo } from './service-info.ts';
import type { Outcome, Settlement, Transport } from './transport.ts';

const gzipped = promisify(gzip);

/** The cheapest level: JSON shrinks to a fifth with it already. */
const GZIP_LEVEL = 1;

/** Sends a batch as one `POST /runs/multipart`. */
export class MultipartTransport implements Transport {
  readonly #client: HttpClient;
  readonly #info: ServiceInfo;
  readonly #pace: Pace;
  readonly #requests: RequestLog;

  constructor(client: HttpClient, info: ServiceInfo, pace: Pace, requests: RequestLog) {
    this.#client = client;
    this.#info = info;
    this.#pace = pace;
    this.#requests = requests;
  }

  async *send(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Settlement> {
    yield { items, outcome: await this.#post(items, signal) };
  }

  async #post(items: readonly Item[], signal: AbortSignal): Promise<Outcome> {
    if (this.#info.refusesMultipart()) return { kind: 'unsupported', detail: 'the service says so' };
    const boundary = `runspan-${randomBytes(16).toString('hex')}`;
    let chunks: readonly Uint8Array[];
    try {
      chunks = await multipartBody(items, boundary, signal);
    } catch (thrown) {
      signal.throwIfAborted();
      // A record that cannot be laid is at fault itself; the others have to be told from it.
      return { kind: 'invalid', detail: messageOf(thrown) };
    }
    try {
      return await this.#postBody(items, boundary, chunks, signal);
    } catch (thrown) {
      return { kind: 'failed', detail: messageOf(thrown) };
    }
  }

  async #postBody(
    items: readonly Item[],
    boundary: string,
    chunks: readonly Uint8Array[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    // The halves of a batch come one after the other, and the first may have brought a pause.
    await this.#pace.waitOut(signal);
    const zipped = this.#info.takesGzip ? await gzipped(Buffer.concat(chunks), { level: GZIP_LEVEL }) : undefined;
    const load = { kind: 'multipart', runs: items.length } as const;
    const answer = await this.#requests.send(this.#client, load, {
      method: 'POST',
      path: '/runs/multipart',
      headers: {
        'content-type': `multipart/form-data; boundary=${boundary}`,
        ...(zipped && { 'content-encoding': 'gzip' }),
      },
      body: zipped === undefined ? chunks : [zipped],
      signal,
    });
    if (answer.status === 415 && zipped !== undefined) {
      this.#info.refuseGzip();
      return this.#postBody(items, boundary, chunks, signal);
    }
    noteWebPage(answer);
    const outcome = outcomeOf(answer, Date.now());
    diagnostics.debug(`${items.length} records sent over multipart: ${outcome.kind}`);
    return outcome;
  }
}
