import type { Attachment } from '../run/record.ts';
import { jsonSizeBytes } from './json.ts';
import type { AttachmentInfo, RunFields, RunOperation, StoredRun } from './store.ts';

/** Where a run stands among the others. */
export interface Place {
  readonly traceId: string;
  /** Undefined as long as the start of the run is not known. */
  readonly dottedOrder: string | undefined;
  /** Levels below a run that has its own order, when this one was made here. */
  readonly level: number;
}

/** What a run takes of the heap beside its fields, and an attachment beside its bytes and texts. Measured. */
const RUN_BYTES = 1_500;
const ATTACHMENT_BYTES = 300;

/** All that has been told of one run so far, in whatever order it came. */
export class RunState {
  readonly id: string;
  /** Where the run stands; set by the store, which knows the other runs. A new run stands nowhere. */
  place: Place | undefined;
  // Apart, so that a post that comes after its patch, or again, takes nothing back.
  readonly #posted = new Layer();
  readonly #patched = new Layer();
  readonly #attachments = new Map<string, Attachment>();
  #attachmentsBytes = 0;
  #fields: RunFields = {};

  constructor(id: string) {
    this.id = id;
  }

  take({ kind, fields, attachments }: RunOperation): void {
    (kind === 'post' ? this.#posted : this.#patched).take(fields);
    for (const attachment of attachments) this.#attach(attachment);
    this.#fields = merged(this.#posted.fields, this.#patched.fields);
  }

  get fields(): RunFields {
    return this.#fields;
  }

  get attachmentNames(): Iterable<string> {
    return this.#attachments.keys();
  }

  /** What the run weighs in the store: itself, its fields, attachments, and the order made for it. */
  get sizeBytes(): number {
    const orderBytes = this.#fields.dotted_order === undefined ? (this.place?.dottedOrder?.length ?? 0) : 0;
    return RUN_BYTES + this.#posted.sizeBytes + this.#patched.sizeBytes + this.#attachmentsBytes + orderBytes;
  }

  attachment(name: string): Attachment | undefined {
    return structuredClone(this.#attachments.get(name));
  }

  /** A copy of the run as it is now, or undefined as long as too little of it is known. */
  record(): StoredRun | undefined {
    const { name, run_type, start_time, inputs = {} } = this.#fields;
    if (name === undefined || run_type === undefined || start_time === undefined) return undefined;
    if (this.place?.dottedOrder === undefined) return undefined;
    const attachments = [...this.#attachments.values()].map(infoOf);
    return structuredClone({
      id: this.id,
      ...this.#fields,
      name,
      run_type,
      start_time,
      inputs,
      trace_id: this.place.traceId,
      dotted_order: this.place.dottedOrder,
      ...(attachments.length === 0 ? {} : { attachments }),
    });
  }

  #attach(attachment: Attachment): void {
    const earlier = this.#attachments.get(attachment.name);
    this.#attachmentsBytes += sizeOf(attachment) - (earlier === undefined ? 0 : sizeOf(earlier));
    this.#attachments.set(attachment.name, attachment);
  }
}

/** What the posts of a run have told, or its patches; a later one adds to the earlier. */
class Layer {
  fields: RunFields = {};
  sizeBytes = 0;
  readonly #sizesBytes = new Map<string, number>();

  take(fields: RunFields): void {
    this.fields = merged(this.fields, fields);
    for (const field of Object.keys(fields) as (keyof RunFields)[]) {
      const sizeBytes = jsonSizeBytes(this.fields[field]);
      this.sizeBytes += sizeBytes - (this.#sizesBytes.get(field) ?? 0);
      this.#sizesBytes.set(field, sizeBytes);
    }
  }
}

function merged(earlier: RunFields, later: RunFields): RunFields {
  const fields = { ...earlier, ...later };
  if (earlier.extra !== undefined && later.extra !== undefined) {
    fields.extra = { ...earlier.extra, ...later.extra };
    if (earlier.extra.metadata !== undefined && later.extra.metadata !== undefined) {
      fields.extra.metadata = { ...earlier.extra.metadata, ...later.extra.metadata };
    }
  }
  return fields;
}

function sizeOf({ name, mimeType, bytes }: Attachment): number {
  return ATTACHMENT_BYTES + Buffer.byteLength(name) + Buffer.byteLength(mimeType) + bytes.length;
}

function infoOf({ name, mimeType, bytes }: Attachment): AttachmentInfo {
  return { name, mime_type: mimeType, size: bytes.length };
}
