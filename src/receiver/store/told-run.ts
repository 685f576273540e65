import type { Attachment } from '../../run/record.ts';
import { type PayloadFacts, payloadFacts } from './run-summary.ts';
import type { PayloadField } from './run-view.ts';
import type { RunOperation } from './store.ts';

/** A payload as text, and what lists need of it, so that nobody has to read it again. */
export interface ToldPayload {
  readonly field: PayloadField;
  readonly text: string;
  readonly facts: PayloadFacts;
}

/** An operation on its way to another thread. */
export interface ToldRun {
  readonly kind: RunOperation['kind'];
  readonly id: string;
  /** All fields that are no payloads, as JSON. */
  readonly fields: string;
  readonly payloads: readonly ToldPayload[];
  readonly attachments: readonly Attachment[];
}

/** In the order in which stores number them. */
export const PAYLOAD_FIELDS: readonly PayloadField[] = ['inputs', 'outputs', 'events'];

export function toldRun({ kind, id, fields, texts, attachments }: RunOperation): ToldRun {
  const { inputs, outputs, events, ...small } = fields;
  const payloads: ToldPayload[] = [];
  for (const field of PAYLOAD_FIELDS) {
    if (fields[field] === undefined) continue;
    const text = texts?.[field] ?? JSON.stringify(fields[field]);
    payloads.push({ field, text, facts: payloadFacts({ [field]: fields[field] }) });
  }
  return { kind, id, fields: JSON.stringify(small), payloads, attachments: attachments.map(ownBytes) };
}

/** What the operation takes on its way, about. */
export function toldSizeBytes({ fields, payloads, attachments }: ToldRun): number {
  let sizeBytes = fields.length;
  for (const { text } of payloads) sizeBytes += text.length;
  for (const { bytes } of attachments) sizeBytes += bytes.length;
  return sizeBytes;
}

/** With bytes of its own: of a view, all that it is a part of would be copied into the other thread. */
function ownBytes({ name, mimeType, bytes }: Attachment): Attachment {
  return { name, mimeType, bytes: bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes) };
}
