import { setSoon } from '../base/timers.ts';
import { type EncodedRun, isFilled, mainJson } from '../run/encoded-run.ts';
import { attachmentFrames, readAttachments } from './attachment-parts.ts';
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
 * The JSON frames are laid by hand into one buffer. Attachments follow the runs, framed by form-data-encoder under the same
 * boundary, and are not copied. Blobs are read first: one that cannot be is left out of its item, and its run says so.
 */
export function multipartBody(
  items: readonly Item[],
  boundary: string,
  signal: AbortSignal,
): Uint8Array[] | Promise<Uint8Array[]> {
  const attached = items.filter((item) => item.stripped === 'nothing' && item.attachments.length > 0);
  if (attached.length > 0) return withAttachments(items, attached, boundary, signal);
  const body = framed(items, boundary).toBuffer(`--${boundary}--\r\n`);
  return body instanceof Promise ? body.then((buffer) => [buffer]) : [body];
}

async function withAttachments(
  items: readonly Item[],
  attached: readonly Item[],
  boundary: string,
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  const attachments = await readAttachments(attached, signal);
  // None could be read, and by now no item has any.
  if (attachments.length === 0) return multipartBody(items, boundary, signal);
  return [await framed(items, boundary).toBuffer(''), ...(await attachmentFrames(attachments, boundary))];
}

function framed(items: readonly Item[], boundary: string): Frames {
  const frames = new Frames(boundary);
  for (const item of items) frames.addRun(item);
  return frames;
}

/** After so many bytes the application has its turn: writing them takes about as long as it may be kept waiting. */
const SLICE_BYTES = 2 * 1024 * 1024;

/** Texts of up to this size are joined before they are written: a call costs more than copying them once more. */
const JOINED_BYTES_MAX = 1_024;

class Frames {
  readonly #prefix: string;
  readonly #texts: string[] = [];
  readonly #lengths: number[] = [];
  #bytes = 0;
  #joined = '';
  #joinedBytes = 0;
  #written = 0;
  #writtenBytes = 0;

  constructor(boundary: string) {
    this.#prefix = `--${boundary}\r\nContent-Disposition: form-data; name="`;
  }

  addRun(item: Item): void {
    const { run } = item.delivery;
    const name = `${item.op}.${run.id}`;
    const main = mainJson(run, item.isEnded, item.endOverride);
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

  /** A promise where it takes more than one slice. */
  toBuffer(footer: string): Buffer | Promise<Buffer> {
    this.#push(footer, footer.length);
    this.#pushJoined();
    const buffer = Buffer.allocUnsafeSlow(this.#bytes);
    return this.#writeSlice(buffer) ? buffer : this.#writeRest(buffer);
  }

  async #writeRest(buffer: Buffer): Promise<Buffer> {
    do await new Promise<void>((resolve) => void setSoon(resolve));
    while (!this.#writeSlice(buffer));
    return buffer;
  }

  /** Whether all is written. */
  #writeSlice(buffer: Buffer): boolean {
    const sliceEnd = this.#writtenBytes + SLICE_BYTES;
    while (this.#written < this.#texts.length && this.#writtenBytes < sliceEnd) {
      const text = this.#texts[this.#written] as string;
      const length = this.#lengths[this.#written] as number;
      // Text of one byte per character, nearly all of it, is copied instead of encoded.
      buffer.write(text, this.#writtenBytes, length === text.length ? 'latin1' : 'utf8');
      this.#written++;
      this.#writtenBytes += length;
    }
    return this.#written === this.#texts.length;
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
