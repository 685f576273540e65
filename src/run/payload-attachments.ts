import { diagnostics } from '../base/diagnostics.ts';
import {
  ATTACHMENTS_MAX,
  type HeldAttachment,
  isBinary,
  isBlob,
  sizeOf,
  typeOf,
  UNKNOWN_TYPE,
  viewOf,
} from './attachment.ts';
import { decoded, parseDataUri } from './data-uri.ts';

/** Bytes of a binary value that stay in their payload, as base64. */
export const BINARY_BYTES_KEPT = 1_024;

/** A payload whose attachments travel beside it. */
export type AttachingField = 'inputs' | 'outputs';

/** What a run has room for. */
export interface AttachmentRoom {
  readonly bytesLeft: number;
  readonly countLeft: number;
  isTaken(name: string): boolean;
}

/**
 * Takes out of one payload what JSON is no place for: binary values, Blobs, data URIs. A marker stands in its place. What
 * comes twice in the payload, the same object or an equal text, is attached once.
 */
export class PayloadAttachments {
  readonly #field: AttachingField;
  readonly #bytesMax: number;
  readonly #room: AttachmentRoom | undefined;
  /** By object or text. */
  #markers: Map<unknown, string> | undefined;
  #bytes = 0;
  #number = 0;
  #taken: HeldAttachment[] | undefined;

  /** `bytesMax` is the limit of a run that has not begun, and has no room of its own. */
  constructor(field: AttachingField, bytesMax: number, room?: AttachmentRoom) {
    this.#field = field;
    this.#bytesMax = bytesMax;
    this.#room = room;
  }

  /** Undefined when the payload had nothing of the kind. */
  get taken(): readonly HeldAttachment[] | undefined {
    return this.#taken;
  }

  /** What stands for a binary value or a Blob that travels beside the payload; undefined for any other, and for a small one. */
  summaryOf(value: object): Readonly<Record<string, unknown>> | undefined {
    const isLarge = isBinary(value) && value.byteLength > BINARY_BYTES_KEPT;
    if (!isLarge && !isBlob(value)) return undefined;
    const byteLength = isBlob(value) ? sizeOf(value) : value.byteLength;
    return { type: value.constructor.name, byteLength, attachment: this.attach(value) };
  }

  /** The name under which an object travels, or a marker that says how much was left out. Bytes are copied. */
  attach(value: ArrayBufferView | ArrayBufferLike | Blob): string {
    const known = this.#markers?.get(value);
    if (known !== undefined) return known;
    const size = isBlob(value) ? sizeOf(value) : value.byteLength;
    let marker = `[Left out: ${size} bytes]`;
    if (this.#hasRoom(size)) {
      marker = isBlob(value) ? this.#add(value, typeOf(value)) : this.#add(viewOf(value).slice(), UNKNOWN_TYPE);
    }
    return this.#remember(value, marker);
  }

  /** What stands in the place of a text that is a data URI; undefined for any other text. */
  attachText(text: string): string | undefined {
    const known = this.#markers?.get(text);
    if (known !== undefined) return known;
    const uri = parseDataUri(text);
    if (uri === undefined) return undefined;
    let name = 'left out';
    if (this.#hasRoom(uri.byteLength)) {
      const bytes = decoded(uri);
      if (bytes === undefined) return undefined;
      name = this.#add(bytes, uri.mimeType);
    }
    return this.#remember(text, `[Attachment ${name}: ${uri.mimeType}, ${uri.byteLength} bytes]`);
  }

  /** Lets go of what was taken, where the payload itself could not be made. */
  clear(): void {
    this.#taken = undefined;
  }

  #remember(source: unknown, marker: string): string {
    this.#markers ??= new Map();
    this.#markers.set(source, marker);
    return marker;
  }

  #hasRoom(size: number): boolean {
    const { bytesLeft, countLeft } = this.#room ?? { bytesLeft: this.#bytesMax, countLeft: ATTACHMENTS_MAX };
    if (this.#bytes + size <= bytesLeft && (this.#taken?.length ?? 0) < countLeft) return true;
    diagnostics.warnOnce(
      'payload attachments',
      `the payloads of a run held binary data beyond limits.attachmentBytes, or over ${ATTACHMENTS_MAX} pieces of it; left out.`,
    );
    return false;
  }

  #add(bytes: Uint8Array | Blob, mimeType: string): string {
    let name = `${this.#field}_${++this.#number}`;
    while (this.#room?.isTaken(name) === true) name = `${this.#field}_${++this.#number}`;
    this.#bytes += sizeOf(bytes);
    this.#taken ??= [];
    this.#taken.push({ name, bytes, mimeType });
    return name;
  }
}
