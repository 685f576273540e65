import type { FileLike, FormDataLike } from 'form-data-encoder';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { withoutPrototype } from '../../config/checker.ts';
import { type HeldAttachment, safeName, sizeOf } from '../../payload/attachment.ts';
import { clearTimer, setSoon, setTimer } from '../../platform/timers.ts';
import { type EncodedRun, isFilled, mainJson } from '../../run/encoded-run.ts';
import type { Attachment } from '../../run/record.ts';
import { dropAttachments, type Item } from '../delivery.ts';
import type { RunEncoder } from './encoder.ts';
import { contentTypeOf, newBoundary, PartBuffer } from './part-buffer.ts';

export const STRIPPED_PAYLOAD = '{"runspan":"left out: the service found this run too large"}';

export const multipartEncoder: RunEncoder = {
  kind: 'multipart',
  path: '/runs/multipart',
  encode: (items, signal) => {
    const boundary = newBoundary();
    const contentType = contentTypeOf(boundary);
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
  const body = new BatchBody(boundary, items);
  const attached = items.filter(({ stripped, attachments }) => stripped === 'nothing' && attachments.length > 0);
  return attached.length === 0 && body.addSlice() ? [body.parts.close()] : encodeInSlices(body, attached, signal);
}

async function encodeInSlices(body: BatchBody, attached: readonly Item[], signal: AbortSignal): Promise<Uint8Array[]> {
  // Attachments are read first, because the metadata contains the number of unreadable attachments.
  const attachments = await readAttachments(attached, signal);
  do await new Promise<void>((resolve) => void setSoon(resolve));
  while (!body.addSlice());
  const { parts } = body;
  if (attachments.length === 0) return [parts.close()];
  return [parts.bytes(), ...(await attachmentFrames(attachments, parts.boundary))];
}

/** Maximum number of bytes to encode per turn of the event loop. */
const SLICE_BYTES = 2 * 1024 * 1024;

/** Estimated size of a run without its payloads, in bytes. */
const RUN_BYTES = 1_600;

/** Encodes the runs of a batch, in slices if they are large. */
class BatchBody {
  readonly parts: PartBuffer;
  readonly #items: readonly Item[];
  #runs = 0;

  constructor(boundary: string, items: readonly Item[]) {
    let capacity = 0;
    for (const { inputs, outputs, events } of items) {
      capacity += RUN_BYTES + (inputs?.length ?? 0) + (outputs?.length ?? 0) + (events?.length ?? 0);
    }
    this.parts = new PartBuffer(boundary, Buffer.allocUnsafeSlow(capacity));
    this.#items = items;
  }

  /** Returns whether all runs are encoded. */
  addSlice(): boolean {
    const { parts } = this;
    const sliceEnd = parts.length + SLICE_BYTES;
    while (this.#runs < this.#items.length && parts.length < sliceEnd) {
      const item = this.#items[this.#runs++] as Item;
      const { run } = item.delivery;
      const payloads = item.stripped === 'payloads' ? strippedPayloads(item) : item;
      parts.addRun(item.op, run.id, mainJson(run, item.isEnded, item.endOverride), payloads);
    }
    return this.#runs === this.#items.length;
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
