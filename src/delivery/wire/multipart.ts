import type { FileLike, FormDataLike } from 'form-data-encoder';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { withoutPrototype } from '../../config/checker.ts';
import { safeName, sizeOf, type WaitingAttachment } from '../../payload/attachment.ts';
import { clearTimer, setSoon, setTimer } from '../../platform/timers.ts';
import { isFilled, mainJson, type PayloadTexts } from '../../run/encoded-run.ts';
import type { Attachment } from '../../run/record.ts';
import { dropAttachments, type Item } from '../delivery.ts';
import type { RunEncoder } from './encoder.ts';
import { contentTypeOf, newBoundary, PartBuffer } from './part-buffer.ts';

export const STRIPPED_PAYLOAD = '{"runspan":"left out: the service found this run too large"}';

export const multipartEncoder: RunEncoder = {
  kind: 'multipart',
  path: '/runs/multipart',
  encode: async (items, signal) => {
    const boundary = newBoundary();
    return { contentType: contentTypeOf(boundary), chunks: await encodeMultipart(items, boundary, signal) };
  },
};

/** Maximum number of bytes to encode per turn of the event loop. */
const SLICE_BYTES = 2 * 1024 * 1024;

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
 * The first chunk contains all JSON parts. Attachments follow in further chunks, without copying their bytes.
 */
async function encodeMultipart(items: readonly Item[], boundary: string, signal: AbortSignal): Promise<Uint8Array[]> {
  const attached = items.filter(({ stripped, attachments }) => stripped === 'nothing' && attachments.length > 0);
  // Attachments are read first, because the metadata contains the number of unreadable attachments.
  const attachments = await readAttachments(attached, signal);
  const sizeBytes = items.reduce((sum, { delivery }) => sum + delivery.bytes, 0);
  const parts = new PartBuffer(boundary, Buffer.allocUnsafeSlow(sizeBytes));
  let sliceEnd = SLICE_BYTES;
  for (const item of items) {
    if (parts.length >= sliceEnd) {
      await new Promise<void>((resolve) => void setSoon(resolve));
      sliceEnd = parts.length + SLICE_BYTES;
    }
    const { run } = item.delivery;
    const payloads = item.stripped === 'payloads' ? strippedPayloads(item) : item;
    parts.addRun(item.op, run.id, mainJson(run, item.isEnded, item.endOverride), payloads);
  }
  if (attachments.length === 0) return [parts.close()];
  return [parts.bytes(), ...(await attachmentFrames(attachments, boundary))];
}

export function strippedPayloads(item: Item): PayloadTexts {
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

/** Reads the attachments, and removes unreadable blobs, as of a changed file. Rejects if the signal aborts. */
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
  for (const chunk of encoder.values()) chunks.push(chunk instanceof Uint8Array ? chunk : (chunk as PartFile).bytes);
  // Replaces the last chunk, because form-data-encoder adds an empty line that RFC 2046 does not allow.
  chunks[chunks.length - 1] = Buffer.from(`--${boundary}--\r\n`);
  return chunks;
}

interface PartFile extends FileLike {
  readonly bytes: Uint8Array;
}

/** Returns a minimal `FormData`. A real `FormData` with `File` objects would copy the attachments. */
function formOf(parts: readonly AttachmentPart[]): FormDataLike {
  const all = parts.map((part): [string, PartFile] => [part.partName, fileOf(part)]);
  const entries = (): IterableIterator<[string, PartFile]> => all.values();
  // form-data-encoder only calls `entries`.
  return { append() {}, getAll: () => [], entries, [Symbol.iterator]: entries, [Symbol.toStringTag]: 'FormData' };
}

function fileOf({ name, bytes, mimeType: type }: AttachmentPart): PartFile {
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  return { name, type, size: bytes.byteLength, lastModified: 0, bytes, stream, [Symbol.toStringTag]: 'File' };
}

async function bytesOf({ bytes }: WaitingAttachment, signal: AbortSignal): Promise<Uint8Array | undefined> {
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
