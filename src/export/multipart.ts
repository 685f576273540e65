import type { FileLike, FormDataEncoder, FormDataEntryValue, FormDataLike } from 'form-data-encoder';
import { type EncodedRun, isFilled, mainJson } from '../run/encoded-run.ts';
import type { Attachment } from '../run/record.ts';
import type { Item } from './delivery.ts';

/** Stands for the payloads of a run that the service found too large. */
export const STRIPPED_PAYLOAD = '{"runspan":"left out: the service found this run too large"}';

/**
 * The body of `POST /runs/multipart`, in chunks to be sent one after the other:
 *
 *     --<boundary>
 *     Content-Disposition: form-data; name="post.<run id>"
 *     Content-Type: application/json
 *     Content-Length: 412
 *
 *     {"id":"…","trace_id":"…","name":"…", … }
 *     --<boundary>
 *     Content-Disposition: form-data; name="post.<run id>.inputs"
 *     …
 *     --<boundary>--
 *
 * The JSON frames are laid by hand into one buffer. Attachments follow their run, framed by form-data-encoder under the
 * same boundary, and are not copied.
 */
export async function multipartBody(items: readonly Item[], boundary: string): Promise<Uint8Array[]> {
  const frames = new Frames(boundary);
  const attached = items.filter((item) => item.stripped === 'nothing' && item.attachments.length > 0);
  for (const item of items) frames.addRun(item);
  if (attached.length === 0) return [frames.toBuffer(`--${boundary}--\r\n`)];
  const chunks: Uint8Array[] = [frames.toBuffer('')];
  const { FormDataEncoder: Encoder } = await import('form-data-encoder');
  const encoder = new Encoder(new AttachmentForm(attached), boundary, { enableAdditionalHeaders: true });
  for (const chunk of chunksOf(encoder)) chunks.push(chunk);
  // Its own last line is followed by an empty one, which is no part of the format (RFC 2046, 5.1.1).
  chunks[chunks.length - 1] = Buffer.from(`--${boundary}--\r\n`);
  return chunks;
}

/** Texts of up to this size are joined before they are written: a call costs more than copying them once more. */
const JOINED_BYTES_MAX = 1_024;

class Frames {
  readonly #prefix: string;
  readonly #texts: string[] = [];
  readonly #lengths: number[] = [];
  #bytes = 0;
  #joined = '';
  #joinedBytes = 0;

  constructor(boundary: string) {
    this.#prefix = `--${boundary}\r\nContent-Disposition: form-data; name="`;
  }

  addRun(item: Item): void {
    const { run } = item.delivery;
    const name = `${item.op}.${run.id}`;
    const main = mainJson(run, item.isEnded);
    this.#add(name, main, Buffer.byteLength(main));
    if (item.stripped === 'payloads') {
      const { inputs, outputs } = strippedPayloads(item);
      if (isFilled(inputs)) this.#add(`${name}.inputs`, inputs, inputs.length);
      if (isFilled(outputs)) this.#add(`${name}.outputs`, outputs, outputs.length);
      return;
    }
    const { inputs, outputs, events } = item;
    if (isFilled(inputs)) this.#add(`${name}.inputs`, inputs, item.inputsBytes);
    if (isFilled(outputs)) this.#add(`${name}.outputs`, outputs, item.outputsBytes);
    if (isFilled(events)) this.#add(`${name}.events`, events, Buffer.byteLength(events));
  }

  toBuffer(footer: string): Buffer {
    this.#push(footer, footer.length);
    this.#pushJoined();
    const buffer = Buffer.allocUnsafeSlow(this.#bytes);
    let at = 0;
    for (let index = 0; index < this.#texts.length; index++) {
      const text = this.#texts[index] as string;
      const length = this.#lengths[index] as number;
      // Text of one byte per character, nearly all of it, is copied instead of encoded.
      buffer.write(text, at, length === text.length ? 'latin1' : 'utf8');
      at += length;
    }
    return buffer;
  }

  #add(name: string, json: string, length: number): void {
    const header = `${this.#prefix}${name}"\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    this.#push(header, header.length);
    this.#push(json, length);
    this.#push('\r\n', 2);
  }

  #push(text: string, length: number): void {
    this.#bytes += length;
    if (length <= JOINED_BYTES_MAX) {
      this.#joined += text;
      this.#joinedBytes += length;
      return;
    }
    this.#pushJoined();
    this.#texts.push(text);
    this.#lengths.push(length);
  }

  #pushJoined(): void {
    this.#texts.push(this.#joined);
    this.#lengths.push(this.#joinedBytes);
    this.#joined = '';
    this.#joinedBytes = 0;
  }
}

/** The payloads that go in the place of those that were too large: a marker wherever there was one. */
export function strippedPayloads(item: Item): Pick<EncodedRun, 'inputs' | 'outputs' | 'events'> {
  const marker = (payload: string | undefined): string | undefined =>
    isFilled(payload) ? STRIPPED_PAYLOAD : undefined;
  return { inputs: marker(item.inputs), outputs: marker(item.outputs), events: undefined };
}

/** An attachment as form-data-encoder takes files. */
class AttachmentFile implements FileLike {
  readonly name: string;
  readonly type: string;
  readonly size: number;
  readonly lastModified = 0;
  readonly bytes: Uint8Array;
  readonly [Symbol.toStringTag] = 'File';

  constructor({ name, bytes, mimeType }: Attachment) {
    this.name = name;
    this.type = mimeType;
    this.size = bytes.byteLength;
    this.bytes = bytes;
  }

  async *stream(): AsyncGenerator<Uint8Array> {
    yield this.bytes;
  }
}

/** The attachments of a batch as form-data-encoder takes a form; it is only ever read. */
class AttachmentForm implements FormDataLike {
  readonly [Symbol.toStringTag] = 'FormData';
  readonly #entries: [string, FormDataEntryValue][] = [];

  constructor(items: readonly Item[]) {
    for (const { delivery, attachments } of items) {
      for (const attachment of attachments) {
        this.append(`attachment.${delivery.run.id}.${attachment.name}`, new AttachmentFile(attachment));
      }
    }
  }

  append(name: string, value: FormDataEntryValue): void {
    this.#entries.push([name, value]);
  }

  getAll(name: string): FormDataEntryValue[] {
    return this.#entries.filter(([key]) => key === name).map(([, value]) => value);
  }

  entries(): IterableIterator<[string, FormDataEntryValue]> {
    return this.#entries.values();
  }

  [Symbol.iterator](): IterableIterator<[string, FormDataEntryValue]> {
    return this.entries();
  }
}

function* chunksOf(encoder: FormDataEncoder): Generator<Uint8Array> {
  for (const chunk of encoder.values()) yield chunk instanceof AttachmentFile ? chunk.bytes : (chunk as Uint8Array);
}
