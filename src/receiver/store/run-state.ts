import type { Attachment } from '../../run/record.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import type { Feedback } from '../feedback/feedback.ts';
import { jsonSizeBytes } from '../ingest/json.ts';
import { type Prices, withCost } from './prices.ts';
import type { FilteredRun } from './run-filter.ts';
import { payloadFacts, summaryOf } from './run-summary.ts';
import type { AttachmentInfo, PayloadField, RunDetails, StoredRun } from './run-view.ts';
import type { RunFields, RunOperation } from './store.ts';
import { PAYLOAD_FIELDS } from './told-run.ts';

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
  readonly #prices: Prices;
  readonly #attachments = new Map<string, Attachment>();
  readonly #feedback = new Map<string, Feedback>();
  #attachmentsBytes = 0;
  #feedbackBytes = 0;
  #fields: RunFields = {};
  /** As lists show it, made when it is first asked for; until something changes. */
  #shown: { readonly at: Place; readonly run: FilteredRun } | undefined;

  constructor(id: string, prices: Prices = {}) {
    this.id = id;
    this.#prices = prices;
  }

  take({ kind, fields, attachments }: RunOperation): void {
    (kind === 'post' ? this.#posted : this.#patched).take(fields);
    for (const attachment of attachments) this.#attach(attachment);
    this.#fields = merged(this.#posted.fields, this.#patched.fields);
    this.#shown = undefined;
  }

  /** Takes the place of the feedback that had its id, and keeps when that was first given. */
  say(feedback: Feedback): void {
    const earlier = this.#feedback.get(feedback.id);
    const kept = structuredClone({ ...feedback, created_at: earlier?.created_at ?? feedback.created_at });
    this.#feedbackBytes += jsonSizeBytes(kept) - (earlier === undefined ? 0 : jsonSizeBytes(earlier));
    this.#feedback.set(feedback.id, kept);
  }

  get feedback(): Iterable<Feedback> {
    return this.#feedback.values();
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
    const toldBytes = this.#posted.sizeBytes + this.#patched.sizeBytes + this.#attachmentsBytes + this.#feedbackBytes;
    return RUN_BYTES + toldBytes + orderBytes;
  }

  attachment(name: string): Attachment | undefined {
    return structuredClone(this.#attachments.get(name));
  }

  /** The run as it is now and will stay, its values those of the store; undefined as long as too little of it is known. */
  record(): StoredRun | undefined {
    const { name, run_type, start_time, inputs = {} } = this.#fields;
    if (name === undefined || run_type === undefined || start_time === undefined) return undefined;
    if (this.place?.dottedOrder === undefined) return undefined;
    const attachments = [...this.#attachments.values()].map(infoOf);
    return {
      id: this.id,
      ...this.#fields,
      name,
      run_type,
      start_time,
      inputs,
      trace_id: this.place.traceId,
      dotted_order: this.place.dottedOrder,
      ...(attachments.length === 0 ? {} : { attachments }),
    };
  }

  /** As lists show it, or undefined as long as too little of it is known. */
  shown(): FilteredRun | undefined {
    const { place } = this;
    if (place?.dottedOrder === undefined) return undefined;
    if (this.#shown?.at !== place) this.#shown = this.#show(place);
    return this.#shown?.run;
  }

  /** A copy of all but the payloads. */
  details(): RunDetails | undefined {
    const summary = this.shown()?.summary;
    if (summary === undefined || this.place?.dottedOrder === undefined) return undefined;
    const { error, extra } = this.#fields;
    const attachments = [...this.#attachments.values()].map(infoOf);
    const texts = PAYLOAD_FIELDS.flatMap((field) => {
      const json = this.payload(field);
      return json === undefined ? [] : [[field, Buffer.byteLength(json)]];
    });
    return structuredClone({
      ...summary,
      dotted_order: this.place.dottedOrder,
      payload_sizes: Object.fromEntries(texts),
      ...(error === undefined || error === '' ? {} : { error }),
      ...(extra === undefined ? {} : { extra }),
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(this.#feedback.size === 0 ? {} : { feedback: [...this.#feedback.values()] }),
    });
  }

  /** As JSON text. */
  payload(field: PayloadField): string | undefined {
    const value = this.#fields[field];
    return value === undefined ? undefined : JSON.stringify(value);
  }

  #show(at: Place): { at: Place; run: FilteredRun } | undefined {
    const fields = this.#fields;
    const told = summaryOf(this.id, at.traceId, fields, payloadFacts(fields));
    const startUs = parseIsoTimestamp(told?.start_time ?? '');
    if (told === undefined || startUs === undefined) return undefined;
    const summary = withCost(told, this.#prices);
    const endUs = parseIsoTimestamp(summary.end_time ?? '');
    const latencyUs = endUs === undefined ? undefined : Math.max(0, endUs - startUs);
    return { at, run: { summary, startUs, latencyUs, metadata: fields.extra?.metadata } };
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

/** What two messages of one layer, or the two layers, make up: where both tell a field, the later is right. */
export function merged<Fields extends Pick<RunFields, 'extra'>>(earlier: Fields, later: Fields): Fields {
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
