import { types } from 'node:util';
import type { HeldAttachment } from './attachment.ts';
import { hasPlainPrototype } from './foreign-value.ts';
import { jsonText } from './json-text.ts';
import { type AttachingField, type AttachmentRoom, PayloadAttachments } from './payload-attachments.ts';
import type { PayloadRules } from './payload-rules.ts';
import { failureText, MASK } from './redaction.ts';
import { placeOf, serialize, trailOf, type Way } from './serialize.ts';
import type { CapturePolicy } from './sink.ts';

/** A payload as JSON text, and what travels beside it. */
export interface EncodedPayload {
  readonly json: string;
  readonly attachments: readonly HeldAttachment[] | undefined;
}

/** The key that a payload gets which is no object. */
const KEYS: Readonly<Record<AttachingField, string>> = { inputs: 'input', outputs: 'outputs' };

const WAYS: Readonly<Record<AttachingField, Way>> = { inputs: ['inputs'], outputs: ['outputs'] };

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
  const rules = capture.payload;
  const attachments = new PayloadAttachments(field, capture.attachmentBytes, room);
  const json = serialize(payloadOf(field, value), rules, WAYS[field], attachments);
  if (json.startsWith('{')) return { json, attachments: attachments.taken };
  const isHidden = placeOf(rules.redaction?.root, [field, key])?.isEnd === true;
  return isHidden
    ? { json: `{"${key}":${jsonText(MASK)}}`, attachments: undefined }
    : { json: `{"${key}":${json}}`, attachments: attachments.taken };
}

/** A key of the metadata, without what patterns find in it. */
export function metadataKey(key: string, rules: PayloadRules): string {
  return rules.redaction?.hasPatterns === true ? shownText(key, rules, []) : key;
}

/** JSON text of one value of the metadata. */
export function metadataJson(key: string, value: unknown, rules: PayloadRules): string {
  return serialize(value, rules, ['metadata', key]);
}

/** The pieces of text with which models answer are called tokens, and are no secrets. */
const TOKEN_EVENT = 'new_token';

/** JSON text of one event. */
export function eventJson(name: string, time: string, data: unknown, rules: PayloadRules): string {
  const shown = name === TOKEN_EVENT ? rulesForPieces(rules) : rules;
  const kwargs = data === undefined ? '' : `,"kwargs":${serialize(data, shown, ['events', undefined, 'kwargs'])}`;
  return `{"name":${jsonText(shownText(name, rules, ['events', undefined, 'name']))},"time":"${time}"${kwargs}}`;
}

/** The name of a run, without what is to be hidden. */
export function shownName(name: string, rules: PayloadRules): string {
  return shownText(name, rules, NAME);
}

const NAME = ['name'] as const;

/** JSON text of one piece of a result that comes in pieces, within the outputs. */
export function chunkJson(value: unknown, rules: PayloadRules, attachments: PayloadAttachments): string {
  return serialize(value, rulesForPieces(rules), CHUNK, attachments);
}

const CHUNK = ['outputs', 'outputs', undefined] as const;

const ofPieces = new WeakMap<PayloadRules, PayloadRules>();

/** The rules where a model's text comes in pieces. */
function rulesForPieces(rules: PayloadRules): PayloadRules {
  const { redaction } = rules;
  if (redaction === undefined || redaction.besideText === redaction) return rules;
  const known = ofPieces.get(rules);
  if (known !== undefined) return known;
  const made = { ...rules, redaction: redaction.besideText };
  ofPieces.set(rules, made);
  return made;
}

/** A text that stands beside the payloads (a name, a tag), without what is to be hidden. */
export function shownText(text: string, { redaction }: PayloadRules, way: Way): string {
  if (redaction === undefined) return text;
  // A trace of which not even the names are told would be none.
  if (redaction.hidesAll) return way[0] === 'name' ? text : MASK;
  try {
    const isHidden = placeOf(redaction.root, way)?.isEnd === true;
    const trail = trailOf(way);
    return isHidden ? redaction.mask(text, trail) : redaction.maskFound(redaction.maskNamed(text, trail), trail);
  } catch (thrown) {
    return failureText(thrown) ?? MASK;
  }
}

/** A payload has to be an object: a plain one stands for itself, `undefined` for none, anything else gets a key. */
function payloadOf(field: AttachingField, value: unknown): unknown {
  if (value === undefined) return {};
  if (isLikeObject(value)) return value;
  // With a computed key an object takes longer to make than all else that is done here.
  return field === 'inputs' ? { input: value } : { outputs: value };
}

/** What a proxy stands for is not asked of it here; as a rule it is an object. */
function isLikeObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return types.isProxy(value) ? !isList(value) : hasPlainPrototype(value);
}

/** A revoked proxy throws even here. */
function isList(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return true;
  }
}
