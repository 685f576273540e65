import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { Pool } from 'undici';
import { batchBody, multipartType } from './limit-wire.mjs';

const BATCH_RUNS = 100;
const BATCH_BYTES = 20 * 2 ** 20;
const REQUESTS_IN_FLIGHT = 4;

/** The levels that runspan uses. Node has zstd since version 22.15. */
const COMPRESS = {
  gzip: (bytes) => promisify(zlib.gzip)(bytes, { level: 1 }),
  zstd: (bytes) => promisify(zlib.zstdCompress)(bytes),
};

/** Builds one buffer per batch and sends it with undici. No limits, merging or retries. */
export class LimitBatches {
  #pool;
  #encoding;
  #requests = new Set();
  #waiting = [];
  #waitingBytes = 0;

  constructor(url, { encoding }) {
    this.#pool = new Pool(url, { connections: REQUESTS_IN_FLIGHT });
    this.#encoding = encoding;
  }

  add(record) {
    this.#waitingBytes += (record.inputs?.length ?? 0) + (record.outputs?.length ?? 0);
    if (this.#waiting.push(record) === BATCH_RUNS || this.#waitingBytes >= BATCH_BYTES) this.#cut();
  }

  async flush() {
    this.#cut();
    // The last batch is built in the next turn of the event loop.
    await new Promise(setImmediate);
    await Promise.all(this.#requests);
  }

  #cut() {
    // Sends outside of the call, like the library.
    if (this.#waiting.length > 0) setImmediate((records) => this.#send(records), this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  #send(records) {
    const request = this.#post(batchBody(records)).finally(() => this.#requests.delete(request));
    this.#requests.add(request);
  }

  async #post(bytes) {
    const encoding = this.#encoding;
    const { statusCode, body } = await this.#pool.request({
      path: '/runs/multipart',
      method: 'POST',
      headers: { 'content-type': multipartType, ...(encoding && { 'content-encoding': encoding }) },
      body: encoding ? await COMPRESS[encoding](bytes) : bytes,
    });
    await body.dump();
    if (statusCode !== 202) throw new Error(`the sink answered ${statusCode}`);
  }
}
