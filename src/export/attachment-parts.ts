import type { FileLike, FormDataEntryValue, FormDataLike } from 'form-data-encoder';
import { diagnostics } from '../base/diagnostics.ts';
import { messageOf } from '../base/text.ts';
import { clearTimer, setTimer } from '../base/timers.ts';
import { type HeldAttachment, safeName, sizeOf } from '../payload/attachment.ts';
import type { Attachment } from '../run/record.ts';
import { dropAttachments, type Item } from './delivery.ts';

/** Time to read one Blob; that of a file on a disk which does not answer would hold its batch for ever. */
const READ_MS_MAX = 10_000;

/** An attachment whose bytes are at hand, and the name of its part. */
export interface AttachmentPart extends Readonly<Attachment> {
  readonly partName: string;
}

/**
 * The attachments of a batch, Blobs read one after the other. One that cannot be read, because its file has changed since,
 * is left out of its item for good. Rejects when the signal is aborted.
 */
export async function readAttachments(items: readonly Item[], signal: AbortSignal): Promise<AttachmentPart[]> {
  const parts: AttachmentPart[] = [];
  for (const item of items) {
    const { run } = item.delivery;
    for (const attachment of item.attachments) {
      const bytes = await bytesOf(attachment, signal);
      if (bytes === undefined) leaveOut(item, attachment);
      else {
        const name = safeName(attachment.name);
        parts.push({ ...attachment, name, bytes, partName: `attachment.${run.id}.${name}` });
      }
    }
  }
  return parts;
}

/** Parts as form-data-encoder frames them, and the last delimiter, to be sent one after the other. */
export async function attachmentFrames(parts: readonly AttachmentPart[], boundary: string): Promise<Uint8Array[]> {
  const { FormDataEncoder } = await import('form-data-encoder');
  const encoder = new FormDataEncoder(new AttachmentForm(parts), boundary, { enableAdditionalHeaders: true });
  const chunks: Uint8Array[] = [];
  for (const chunk of encoder.values()) {
    chunks.push(chunk instanceof AttachmentFile ? chunk.bytes : (chunk as Uint8Array));
  }
  // Its own last line is followed by an empty one, which is no part of the format (RFC 2046, 5.1.1).
  chunks[chunks.length - 1] = Buffer.from(`--${boundary}--\r\n`);
  return chunks;
}

async function bytesOf({ bytes }: HeldAttachment, signal: AbortSignal): Promise<Uint8Array | undefined> {
  if (bytes instanceof Uint8Array) return bytes;
  try {
    return await readBlob(bytes, signal);
  } catch (thrown) {
    signal.throwIfAborted();
    diagnostics.warnOnce('attached blob', `an attachment could not be read and is left out: ${messageOf(thrown)}`);
    return undefined;
  }
}

/** What a subclass makes of these methods is not asked. */
function readBlob(blob: Blob, signal: AbortSignal): Promise<Uint8Array> {
  // A FIFO is a file of no bytes, and Node would wait for its writer with the whole thread.
  if (sizeOf(blob) === 0) return Promise.resolve(new Uint8Array());
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort);
    const timer = setTimer(() => reject(new Error(`not read within ${READ_MS_MAX} ms`)), READ_MS_MAX).unref();
    Blob.prototype.arrayBuffer
      .call(blob)
      .then((buffer) => {
        if (buffer.byteLength !== sizeOf(blob)) throw new Error('it is shorter than it was');
        resolve(new Uint8Array(buffer));
      })
      .catch(reject)
      .finally(() => {
        clearTimer(timer);
        signal.removeEventListener('abort', abort);
      });
  });
}

function leaveOut(item: Item, attachment: HeldAttachment): void {
  item.attachments = item.attachments.filter((other) => other !== attachment);
  dropAttachments(item.delivery.run, [attachment]);
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

  constructor(parts: readonly AttachmentPart[]) {
    for (const part of parts) this.append(part.partName, new AttachmentFile(part));
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
