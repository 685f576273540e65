import type { Attachment } from '../run/record.ts';
import { jsonSizeBytes } from './json-size.ts';
import type { Place } from './place.ts';
import type { AttachmentInfo, RunFields, RunOperation, StoredRun } from './store.ts';

/** All that has been told of one run so far, in whatever order it came. */
export class RunState {
  readonly id: string;
  /** Where the run stands; set by the store, which knows the other runs. */
  place: Place;
  // Apart, so that a post that comes after its patch, or again, takes nothing back.
  readonly #posted = new Layer();
  readonly #patched = new Layer();
  readonly #attachments = new Map<string, Attachment>();
  #fields: RunFields = {};

  constructor(id: string) {
    this.id = id;
    this.place = { traceId: id, dottedOrder: undefined };
  }

  take({ kind, fields, attachments }: RunOperation): void {
    (kind === 'post' ? this.#posted : this.#patched).take(fields);
    for (const attachment of attachments) this.#attachments.set(attachment.name, attachment);
    this.#fields = merged(this.#posted.fields, this.#patched.fields);
  }

  get fields(): RunFields {
    return this.#fields;
  }

  /** What the run holds of the store's limit: fields as JSON text, attachments, and the order made for it. */
  get sizeBytes(): number {
    let sizeBytes = this.#posted.sizeBytes + this.#patched.sizeBytes;
    for (const { bytes } of this.#attachments.values()) sizeBytes += bytes.length;
    return sizeBytes + (this.#fields.dotted_order === undefined ? (this.place.dottedOrder?.length ?? 0) : 0);
  }

  attachment(name: string): Attachment | undefined {
    return structuredClone(this.#attachments.get(name));
  }

  /** A copy of the run as it is now, or undefined as long as too little of it is known. */
  record(): StoredRun | undefined {
    const { name, run_type, start_time, inputs = {} } = this.#fields;
    const { traceId, dottedOrder } = this.place;
    if (name === undefined || run_type === undefined || start_time === undefined || dottedOrder === undefined) {
      return undefined;
    }
    const attachments = [...this.#attachments.values()].map(infoOf);
    return structuredClone({
      id: this.id,
      ...this.#fields,
      name,
      run_type,
      start_time,
      inputs,
      trace_id: traceId,
      dotted_order: dottedOrder,
      ...(attachments.length === 0 ? {} : { attachments }),
    });
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

function infoOf({ name, mimeType, bytes }: Attachment): AttachmentInfo {
  return { name, mime_type: mimeType, size: bytes.length };
}
