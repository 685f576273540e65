import type { FileLike, FormDataLike } from 'form-data-encoder';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { withoutPrototype } from '../../config/checker.ts';
import { type HeldAttachment, safeName, sizeOf } from '../../payload/attachment.ts';
import { clearTimer, setSoon, setTimer } from '../../platform/timers.ts';
import { type EncodedRun, isFilled, mainJson } from '../../run/encoded-run.ts';
import { randomHex } from '../../run/ids.ts';
import type { Attachment } from '../../run/record.ts';
import { dropAttachments, type Item } from '../delivery.ts';
import type { RunEncoder } from './encoder.ts';

export const STRIPPED_PAYLOAD = '{"runspan":"left out: the service found this run too large"}';

export const multipartEncoder: RunEncoder = {
  kind: 'multipart',
  path: '/runs/multipart',
  encode: (items, signal) => {
    const boundary = `runspan-${randomHex(32)}`;
    const contentType = `multipart/form-data; boundary=${boundary}`;
    const chunks = encodeMultipart(items, boundary, signal);
    // Avoids `await` for batches without attachments, so that they are sent in the same turn of the event loop.
    return chunks instanceof Promise ? chunks.then((all) => ({ contentType, chunks: all })) : { contentType, chunks };
  },
};

/**
 * Encodes the request body of `POST /runs/multipart` in chunks. Example:
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
 * The first chunk contains all JSON parts. Attachments follow in further chunks, without copying their bytes. Returns a
 * promise only if the batch has attachments or is larger than 2 MiB.
 */
function encodeMultipart(
  items: readonly Item[],
  boundary: string,
  signal: AbortSignal,
): Uint8Array[] | Promise<Uint8Array[]> {
  const body = new PartBuffer(boundary, items);
  const attached = items.filter(({ stripped, attachments }) => stripped === 'nothing' && attachments.length > 0);
  return attached.length === 0 && body.addRuns(items) ? [body.close()] : encodeInSlices(body, items, attached, signal);
}

async function encodeInSlices(
  body: PartBuffer,
  items: readonly Item[],
  attached: readonly Item[],
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  // Attachments are read first, because the metadata contains the number of unreadable attachments.
  const attachments = await readAttachments(attached, signal);
  do await new Promise<void>((resolve) => void setSoon(resolve));
  while (!body.addRuns(items));
  if (attachments.length === 0) return [body.close()];
  return [body.bytes(), ...(await attachmentFrames(attachments, body.boundary))];
}

/** Maximum number of bytes to encode per turn of the event loop. */
const SLICE_BYTES = 2 * 1024 * 1024;

/** Estimated size of a run without its payloads, in bytes. */
const RUN_BYTES = 1_600;

/** JSON text up to this length is written in one call with its header, which is faster. */
const JOINED_CHARACTERS_MAX = 1_024;

/** Maximum UTF-8 bytes per character. If fewer bytes are free after a write, the text may have been truncated. */
const CHARACTER_BYTES_MAX = 4;

const CRLF_BYTES = 2;

const EMPTY_OBJECT_CHARACTERS = '{}'.length;

/** A growing buffer for the JSON parts of the request body. */
class PartBuffer {
  readonly boundary: string;
  readonly #frame: string;
  #buffer: Buffer;
  #length = 0;
  #runs = 0;

  constructor(boundary: string, items: readonly Item[]) {
    this.boundary = boundary;
    this.#frame = `--${boundary}\r\nContent-Disposition: form-data; name="`;
    let capacity = CHARACTER_BYTES_MAX * 2;
    for (const { inputs, outputs, events } of items) {
      capacity += RUN_BYTES + (inputs?.length ?? 0) + (outputs?.length ?? 0) + (events?.length ?? 0);
    }
    this.#buffer = Buffer.allocUnsafeSlow(capacity);
  }

  addRuns(items: readonly Item[]): boolean {
    const sliceEnd = this.#length + SLICE_BYTES;
    while (this.#runs < items.length && this.#length < sliceEnd) this.#addRun(items[this.#runs++] as Item);
    return this.#runs === items.length;
  }

  /** Returns a view of the buffer. Add no parts afterwards. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  close(): Buffer {
    this.#write(`--${this.boundary}--\r\n`);
    return this.bytes();
  }

  #addRun(item: Item): void {
    const { run } = item.delivery;
    const name = `${item.op}.${run.id}`;
    const { inputs, outputs, events } = item.stripped === 'payloads' ? strippedPayloads(item) : item;
    this.#addPart(name, mainJson(run, item.isEnded, item.endOverride));
    if (inputs !== undefined) this.#addPart(`${name}.inputs`, inputs);
    if (outputs !== undefined) this.#addPart(`${name}.outputs`, outputs);
    if (events !== undefined) this.#addPart(`${name}.events`, events);
  }

  /**
   * Adds a part, unless the JSON is empty. `Content-Length` is first set to the number of characters, which is correct
   * for ASCII text. For other text, `Content-Length` is corrected after writing, because counting bytes beforehand is
   * slower.
   */
  #addPart(name: string, json: string): void {
    if (json.length <= EMPTY_OBJECT_CHARACTERS) return;
    const start = this.#length;
    let lengthBytes = json.length;
    for (;;) {
      const length = String(lengthBytes);
      const header = `${this.#frame}${name}"\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
      if (json.length <= JOINED_CHARACTERS_MAX) {
        this.#write(`${header}${json}\r\n`);
      } else {
        this.#write(header);
        this.#write(json);
        this.#write('\r\n');
      }
      const writtenBytes = this.#length - start - header.length - CRLF_BYTES;
      if (writtenBytes === lengthBytes) return;
      const corrected = String(writtenBytes);
      if (corrected.length === length.length) {
        this.#buffer.write(corrected, start + header.length - 2 * CRLF_BYTES - length.length, 'latin1');
        return;
      }
      lengthBytes = writtenBytes;
      this.#length = start;
    }
  }

  #write(text: string): void {
    let written = this.#buffer.write(text, this.#length, 'utf8');
    while (this.#buffer.length - this.#length - written < CHARACTER_BYTES_MAX) {
      const grown = Buffer.allocUnsafeSlow(this.#buffer.length * 2 + text.length);
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
      written = this.#buffer.write(text, this.#length, 'utf8');
    }
    this.#length += written;
  }
}

export function strippedPayloads(item: Item): Pick<EncodedRun, 'inputs' | 'outputs' | 'events'> {
  const marker = (payload: string | undefined): string | undefined =>
    isFilled(payload) ? STRIPPED_PAYLOAD : undefined;
  return { inputs: marker(item.inputs), outputs: marker(item.outputs), events: undefined };
}

// ── Attachments ──

/** Maximum time to read a `Blob` from a disk that may not respond, in milliseconds. */
const READ_MS_MAX = 10_000;

interface AttachmentPart extends Readonly<Attachment> {
  readonly partName: string;
}

/**
 * Reads the attachments. Unreadable blobs are removed, for example if the file has changed. Rejects if the signal
 * aborts.
 */
async function readAttachments(items: readonly Item[], signal: AbortSignal): Promise<AttachmentPart[]> {
  const parts: AttachmentPart[] = [];
  for (const item of items) {
    const { run } = item.delivery;
    for (const attachment of item.attachments) {
      const bytes = await bytesOf(attachment, signal);
      if (bytes === undefined) {
        item.attachments = item.attachments.filter((other) => other !== attachment);
        dropAttachments(run, [attachment]);
      } else {
        const name = safeName(attachment.name);
        parts.push({ ...attachment, name, bytes, partName: `attachment.${run.id}.${name}` });
      }
    }
  }
  return parts;
}

async function attachmentFrames(parts: readonly AttachmentPart[], boundary: string): Promise<Uint8Array[]> {
  const { FormDataEncoder } = await import('form-data-encoder');
  // On Vercel's edge runtime, form-data-encoder accepts only objects without a prototype.
  const options = withoutPrototype({ enableAdditionalHeaders: true });
  const encoder = new FormDataEncoder(formOf(parts), boundary, options);
  const chunks: Uint8Array[] = [];
  for (const chunk of encoder.values()) chunks.push(chunk instanceof Uint8Array ? chunk : (chunk as HeldFile).bytes);
  // Replaces the last chunk, because form-data-encoder adds an empty line that RFC 2046 does not allow.
  chunks[chunks.length - 1] = Buffer.from(`--${boundary}--\r\n`);
  return chunks;
}

interface HeldFile extends FileLike {
  readonly bytes: Uint8Array;
}

/** Returns a minimal `FormData`. A real `FormData` with `File` objects would copy the attachments. */
function formOf(parts: readonly AttachmentPart[]): FormDataLike {
  const all = parts.map((part): [string, HeldFile] => [part.partName, fileOf(part)]);
  const entries = (): IterableIterator<[string, HeldFile]> => all.values();
  // form-data-encoder only calls `entries`.
  return { append() {}, getAll: () => [], entries, [Symbol.iterator]: entries, [Symbol.toStringTag]: 'FormData' };
}

function fileOf({ name, bytes, mimeType: type }: AttachmentPart): HeldFile {
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  return { name, type, size: bytes.byteLength, lastModified: 0, bytes, stream, [Symbol.toStringTag]: 'File' };
}

async function bytesOf({ bytes }: HeldAttachment, signal: AbortSignal): Promise<Uint8Array | undefined> {
  if (bytes instanceof Uint8Array) return bytes;
  try {
    return await readBlob(bytes, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    diagnostics.warnOnce('attached blob', `an attachment could not be read and is not sent: ${messageOf(thrown)}`);
    return undefined;
  }
}

/** Reads a blob. Subclasses of `Blob` may override `arrayBuffer`, so the original method is called. */
function readBlob(blob: Blob, signal: AbortSignal): Promise<Uint8Array> {
  // A blob of size 0 may be a FIFO. Reading a FIFO blocks a thread until another process writes to the FIFO.
  if (sizeOf(blob) === 0) return Promise.resolve(new Uint8Array());
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort);
    const timer = setTimer(() => reject(new Error(`not read within ${READ_MS_MAX} ms`)), READ_MS_MAX).unref();
    Blob.prototype.arrayBuffer
      .call(blob)
      .then((buffer) => {
        if (buffer.byteLength !== sizeOf(blob)) throw new Error('its size has changed');
        resolve(new Uint8Array(buffer));
      })
      .catch(reject)
      .finally(() => {
        clearTimer(timer);
        signal.removeEventListener('abort', abort);
      });
  });
}
