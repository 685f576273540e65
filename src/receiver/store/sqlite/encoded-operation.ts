import type { Attachment } from '../../../run/record.ts';
import { type PayloadFacts, payloadFacts } from '../run-summary.ts';
import { PAYLOAD_FIELDS, type PayloadField } from '../run-view.ts';
import type { RunOperation } from '../store.ts';

/** A payload as JSON text, and the facts about it that lists show. */
export interface EncodedPayload {
  readonly field: PayloadField;
  readonly text: string;
  readonly facts: PayloadFacts;
}

/** An operation as it is sent to the thread that writes. */
export interface EncodedOperation {
  readonly kind: RunOperation['kind'];
  readonly id: string;
  /** JSON text of all fields but the payloads. */
  readonly fields: string;
  readonly payloads: readonly EncodedPayload[];
  readonly attachments: readonly Attachment[];
}

export function encodedOperation({ kind, id, fields, texts, attachments }: RunOperation): EncodedOperation {
  const { inputs, outputs, events, ...small } = fields;
  const payloads: EncodedPayload[] = [];
  for (const field of PAYLOAD_FIELDS) {
    if (fields[field] === undefined) continue;
    const text = texts?.[field] ?? JSON.stringify(fields[field]);
    payloads.push({ field, text, facts: payloadFacts({ [field]: fields[field] }) });
  }
  return { kind, id, fields: JSON.stringify(small), payloads, attachments: attachments.map(withOwnBuffer) };
}

/** The approximate size of an operation in memory. */
export function encodedSizeBytes({ fields, payloads, attachments }: EncodedOperation): number {
  let sizeBytes = fields.length;
  for (const { text } of payloads) sizeBytes += text.length;
  for (const { bytes } of attachments) sizeBytes += bytes.length;
  return sizeBytes;
}

/** Copies bytes that are part of a larger buffer, because the whole buffer would be copied to the other thread. */
function withOwnBuffer({ name, mimeType, bytes }: Attachment): Attachment {
  return { name, mimeType, bytes: bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes) };
}
