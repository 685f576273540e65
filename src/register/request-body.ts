import type { IncomingMessage } from 'node:http';
import { changesPayloads } from '../integrations/fetch/exchange.ts';
import { defined, isFields, parsedJson } from '../payload/fields.ts';
import { encodePayload } from '../payload/serialize.ts';
import type { Run } from '../run/run.ts';

/** Maximum size of a recorded body in bytes. A larger body is not recorded. */
const SIZE_MAX_BYTES = 1_048_576;

/** The body of an incoming request, which is recorded while the application reads it. */
export class RequestBody {
  #chunks: Buffer[] = [];
  #sizeBytes = 0;

  /** Adds the data of an event `data`. `encoding` is that of a text. */
  add(chunk: unknown, encoding: BufferEncoding | null): void {
    const bytes = Buffer.from(chunk as string, encoding ?? undefined);
    this.#sizeBytes += bytes.length;
    if (this.#sizeBytes > SIZE_MAX_BYTES) this.#chunks = [];
    else this.#chunks.push(bytes);
  }

  /**
   * Attaches what a test needs to send the request again. Only a JSON body is recorded, because secrets are masked by the
   * names of fields. Headers and the query are left out, because they may contain secrets.
   */
  attachTo(run: Run, { method, headers }: IncomingMessage, path: string): void {
    if (this.#sizeBytes > SIZE_MAX_BYTES || run.capture.hideInputs || changesPayloads(run.capture)) return;
    const body = Buffer.concat(this.#chunks).toString();
    if (body !== '' && !isFields(parsedJson(body))) return;
    const { json } = encodePayload(
      'inputs',
      defined({ method, path, contentType: headers['content-type'], body }),
      run.capture,
    );
    run.attach('request', new TextEncoder().encode(json), 'application/json');
  }
}
