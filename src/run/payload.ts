import type { HeldAttachment } from './attachment.ts';
import { type AttachingField, type AttachmentRoom, PayloadAttachments } from './payload-attachments.ts';
import { serialize } from './serialize.ts';
import type { CapturePolicy } from './sink.ts';

/** A payload as JSON text, and what travels beside it. */
export interface EncodedPayload {
  readonly json: string;
  readonly attachments: readonly HeldAttachment[] | undefined;
}

/** The key that a payload gets which is no object. */
const KEYS: Readonly<Record<AttachingField, string>> = { inputs: 'input', outputs: 'outputs' };

/**
 * Encodes a payload, `room` being what its run has left for attachments; without it the run has none yet. The JSON text is
 * that of an object also where `toJSON`, or a proxy that cannot be read, makes something else of a plain one.
 */
export function encodePayload(
  field: AttachingField,
  value: unknown,
  capture: CapturePolicy,
  room?: AttachmentRoom,
): EncodedPayload {
  const key = KEYS[field];
  const attachments = new PayloadAttachments(field, capture.attachmentBytes, room);
  const json = serialize(payloadOf(key, value), capture.payload, undefined, attachments);
  return { json: json.startsWith('{') ? json : `{"${key}":${json}}`, attachments: attachments.taken };
}

/** A payload has to be an object: a plain one stands for itself, `undefined` for none, anything else gets a key. */
function payloadOf(key: string, value: unknown): Readonly<Record<string, unknown>> {
  if (value === undefined) return {};
  return isPlainObject(value) ? value : { [key]: value };
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  try {
    if (typeof value !== 'object' || value === null) return false;
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null;
  } catch {
    return false;
  }
}
