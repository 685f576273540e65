import { types } from '../base/node.ts';
import { messageOf } from '../base/text.ts';
import { type AttachingField, type AttachmentRoom, type HeldAttachment, PayloadAttachments } from './attachment.ts';
import { Copier } from './copy.ts';
import { hasPlainPrototype } from './describe.ts';
import type { PayloadRules } from './limits.ts';
import { mayBeDataUri, PlainCheck } from './plain.ts';
import { failureText, MASK, type PathPlace, placeOf, shownText, trailOf, type Way } from './redact.ts';

/**
 * Returns the JSON text of any value as it is now, masked and within the limits. Never throws. Plain data is written by
 * `JSON.stringify`, after a check that reads each property, so a getter of a plain object is called twice. Any other value
 * is copied first. The copy has a text for each value that JSON lacks:
 *
 * - cycles `[Circular]`, functions `[Function name]`, promises `[Promise]`, streams and iterators by their kind, symbols by
 *   their description, a proxy that cannot be read `[Proxy]`;
 * - BigInt `123n`; NaN and the infinities by name; dates in ISO 8601; URLs without user and password;
 * - Map, Headers and similar objects as an object, a Map with other keys as a list of pairs, a Set as a list;
 * - Error as an object of name, message, stack, cause and its own properties;
 * - Request, Response, Blob and File as an object with their `type`; binary as `{ type, byteLength, base64 }` with at
 *   most 1 KiB of base64; with `attachments`, a larger one and a Blob as `{ type, byteLength, attachment }`, and a long data
 *   URI as `[Attachment name: type, bytes]`;
 * - a getter or `toJSON` that throws as `[Threw: message]`;
 * - half of a surrogate pair as U+FFFD, because strict services refuse it;
 * - a marker with the number of omitted values beyond a limit, and the mask of a masked value.
 */
export function serialize(
  value: unknown,
  rules: PayloadRules,
  way: Way = [],
  attachments?: PayloadAttachments,
): string {
  return plainJson(value, rules, way) ?? copiedJson(value, rules, way, attachments);
}

/** The JSON text of a payload and its attachments. */
export interface EncodedPayload {
  readonly json: string;
  readonly attachments: readonly HeldAttachment[] | undefined;
}

/** How payloads of a run are recorded. */
export interface PayloadPolicy {
  readonly payload: PayloadRules;
  readonly attachmentBytes: number;
}

const WAYS: Readonly<Record<AttachingField, Way>> = { inputs: ['inputs'], outputs: ['outputs'] };

/**
 * Encodes a payload. The JSON text is always that of an object: a value that is not a plain object gets the key `input` or
 * `outputs`. `room` is undefined for a run that has no attachments yet.
 */
export function encodePayload(
  field: AttachingField,
  value: unknown,
  { payload: rules, attachmentBytes }: PayloadPolicy,
  room?: AttachmentRoom,
): EncodedPayload {
  const given = payloadOf(field, value);
  const plain = plainJson(given, rules, WAYS[field]);
  // `toJSON`, or a proxy that cannot be read, may turn an object into something else.
  if (plain?.charCodeAt(0) === OPENING_BRACE) return { json: plain, attachments: undefined };
  const attachments = new PayloadAttachments(field, attachmentBytes, room);
  const json = copiedJson(given, rules, WAYS[field], attachments);
  if (json.charCodeAt(0) === OPENING_BRACE) return { json, attachments: attachments.taken };
  const key = KEYS[field];
  const isMasked = placeOf(rules.redaction?.root, [field, key])?.isEnd === true;
  return isMasked
    ? { json: `{"${key}":${jsonText(MASK)}}`, attachments: undefined }
    : { json: `{"${key}":${json}}`, attachments: attachments.taken };
}

/** Returns a metadata key, masked where a pattern matches. */
export function metadataKey(key: string, { redaction }: PayloadRules): string {
  return redaction === undefined || redaction.plain !== undefined || redaction.hidesAll
    ? key
    : shownText(key, redaction, []);
}

/** Returns the JSON text of one metadata value. */
export function metadataJson(key: string, value: unknown, rules: PayloadRules): string {
  return serialize(value, rules, ['metadata', key]);
}

/** Returns the JSON text of one event. */
export function eventJson(name: string, time: string, data: unknown, rules: PayloadRules): string {
  const shown = name === TOKEN_EVENT ? chunkRules(rules) : rules;
  const kwargs = data === undefined ? '' : `,"kwargs":${serialize(data, shown, ['events', undefined, 'kwargs'])}`;
  const shownName = shownText(name, rules.redaction, ['events', undefined, 'name']);
  return `{"name":${jsonText(shownName)},"time":"${time}"${kwargs}}`;
}

/** Returns the name of a run, masked. */
export function shownName(name: string, { redaction }: PayloadRules): string {
  return shownText(name, redaction, NAME);
}

const CHUNK: Way = ['outputs', 'outputs', undefined];

/** The chunks of one result. The rules for names are those of model output, where pieces of text are called tokens. */
export class ChunkList {
  readonly #rules: PayloadRules;
  readonly #newAttachments: () => PayloadAttachments;
  readonly #keep: (attachments: readonly HeldAttachment[]) => void;
  readonly #json: string[] = [];
  /** The latest chunks, if they are strings, which cannot change. */
  #texts: string[] = [];

  /** `newAttachments` is called for a chunk that is not plain. `keep` gets its attachments. */
  constructor(
    rules: PayloadRules,
    newAttachments: () => PayloadAttachments,
    keep: (attachments: readonly HeldAttachment[]) => void,
  ) {
    this.#rules = chunkRules(rules);
    this.#newAttachments = newAttachments;
    this.#keep = keep;
  }

  /** Adds a chunk as it is now. Returns about the length of its JSON text. */
  add(chunk: unknown): number {
    // A path or a replacement function is about the chunk itself, and a data URI becomes an attachment.
    if (typeof chunk === 'string' && this.#areTextsAlike && !mayBeDataUri(chunk)) {
      this.#texts.push(chunk);
      return chunk.length + 2;
    }
    this.#encodeTexts();
    const json = plainJson(chunk, this.#rules, CHUNK) ?? this.#copied(chunk);
    this.#json.push(json);
    return json.length;
  }

  /** Returns the JSON text of the list. */
  json(): string {
    this.#encodeTexts();
    return `[${this.#json.join(',')}]`;
  }

  get #areTextsAlike(): boolean {
    return this.#rules.redaction === undefined || this.#rules.redaction.plain !== undefined;
  }

  #copied(chunk: unknown): string {
    const attachments = this.#newAttachments();
    const json = copiedJson(chunk, this.#rules, CHUNK, attachments);
    if (attachments.taken !== undefined) this.#keep(attachments.taken);
    return json;
  }

  #encodeTexts(): void {
    const texts = this.#texts;
    if (texts.length === 0) return;
    this.#texts = [];
    const json = plainJson(texts, this.#rules, CHUNK);
    if (json !== undefined) this.#json.push(json.slice(1, -1));
    else for (const text of texts) this.#json.push(serialize(text, this.#rules, CHUNK));
  }
}

/** Whether JSON text of an object can be recorded as it is: it is valid, within the limits, and nothing in it is masked. */
export function isPlainJson(text: string, { redaction, ...limits }: PayloadRules): boolean {
  const check = redaction === undefined ? unmasked : redaction.plain;
  try {
    return check?.isPlainJson(text, limits) === true;
  } catch {
    // Invalid JSON.
    return false;
  }
}

/** Returns the JSON text of a string. Half of a surrogate pair, which strict services refuse, becomes U+FFFD. */
export function jsonText(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

const OPENING_BRACE = 0x7b;
const NAME: Way = ['name'];
const KEYS: Readonly<Record<AttachingField, string>> = { inputs: 'input', outputs: 'outputs' };

/** The chunks of model output are called tokens, and are not secrets. */
const TOKEN_EVENT = 'new_token';

const unmasked = new PlainCheck();

/** Returns the JSON text of plain data. Returns undefined for a value that must be copied, masked or cut. */
function plainJson(value: unknown, rules: PayloadRules, way: Way): string | undefined {
  const { redaction } = rules;
  const check = redaction === undefined ? unmasked : redaction.plain;
  if (check === undefined) return undefined;
  const field = way.at(-1);
  if (typeof field === 'string' && check.isSpecial(field)) return undefined;
  try {
    return check.jsonOf(value, rules);
  } catch {
    // A getter, or a proxy, threw.
    return undefined;
  }
}

function copiedJson(value: unknown, rules: PayloadRules, way: Way, attachments?: PayloadAttachments): string {
  const { redaction } = rules;
  try {
    if (redaction?.hidesAll) return jsonText(MASK);
    const trail = trailOf(way);
    let place: PathPlace | undefined;
    if (redaction !== undefined) {
      place = placeOf(redaction.root, way);
      const field = way.at(-1);
      const isNamed = typeof field === 'string' && redaction.names?.hides(field, value, {}) === true;
      if (isNamed || place?.isEnd === true) return jsonText(redaction.mask(value, trail));
    }
    return JSON.stringify(new Copier(rules, place, trail, attachments).copy(value)) ?? 'null';
  } catch (thrown) {
    attachments?.clear();
    // The limits allow more than the stack or a string.
    return jsonText(failureText(thrown) ?? `[Threw: ${messageOf(thrown)}]`);
  }
}

function chunkRules(rules: PayloadRules): PayloadRules {
  return { ...rules, redaction: rules.redaction?.ofChunks };
}

/** Returns the object to record: `{}` for undefined, a plain object itself, any other value under a key. */
function payloadOf(field: AttachingField, value: unknown): unknown {
  if (value === undefined) return {};
  if (isLikeObject(value)) return value;
  // An object literal with a computed key takes longer than the rest of this function.
  return field === 'inputs' ? { input: value } : { outputs: value };
}

/** A proxy counts as an object unless it is one of an array. */
function isLikeObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return hasPlainPrototype(value) || (types.isProxy(value) && !Array.isArray(value));
  } catch {
    // A revoked proxy.
    return false;
  }
}
