import { types } from '../base/node.ts';
import { messageOf } from '../base/text.ts';
import { type AttachingField, type AttachmentRoom, type HeldAttachment, PayloadAttachments } from './attachment.ts';
import { Copier } from './copy.ts';
import { hasPlainPrototype } from './describe.ts';
import type { PayloadRules } from './limits.ts';
import { mayBeDataUri, PlainCheck } from './plain.ts';
import { failureText, MASK, type PathPlace, placeOf, shownText, trailOf, type Way } from './redact.ts';

/**
 * Returns the current JSON text of any value, masked and within the limits. Never throws. Plain data is checked and
 * then encoded by `JSON.stringify`, so a getter of a plain object is called twice. Any other value is copied first. The
 * copy contains:
 *
 * - `[Circular]` for a cycle, `[Function name]` for a function, `[Promise]` for a promise, the kind of a stream or
 *   iterator, the description of a symbol, and `[Proxy]` for an unreadable proxy;
 * - `123n` for a BigInt, the name of NaN or an infinity, a date in ISO 8601, and a URL without user and password;
 * - an object for Headers or a Map with string keys, a list of pairs for any other Map, and a list for a Set;
 * - an object with name, message, stack, cause and own properties for an Error;
 * - an object with a `type` for a Request, Response, Blob or File;
 * - `{ type, byteLength, base64 }` with at most 1 KiB for binary data, or `{ type, byteLength, attachment }` for larger
 *   binary data and Blobs and `[Attachment name: type, bytes]` for long data URIs if `attachments` is set;
 * - `[Threw: message]` for a getter or `toJSON` that throws;
 * - U+FFFD for a lone surrogate, because strict services reject lone surrogates;
 * - a marker with the number of omitted values if a limit is exceeded, and the mask of a masked value.
 */
export function serialize(
  value: unknown,
  rules: PayloadRules,
  way: Way = [],
  attachments?: PayloadAttachments,
): string {
  return plainJson(value, rules, way) ?? copiedJson(value, rules, way, attachments);
}

/** The JSON text of a payload, and the attachments extracted from the payload. */
export interface EncodedPayload {
  readonly json: string;
  readonly attachments: readonly HeldAttachment[] | undefined;
}

/** Rules for recording the payloads of a run. */
export interface PayloadPolicy {
  readonly payload: PayloadRules;
  readonly attachmentBytes: number;
}

const WAYS: Readonly<Record<AttachingField, Way>> = { inputs: ['inputs'], outputs: ['outputs'] };

/**
 * Encodes a payload as a JSON object. A value that is not a plain object gets the key `input` or `outputs`. `room` is
 * undefined if the run has no attachments yet.
 */
export function encodePayload(
  field: AttachingField,
  value: unknown,
  { payload: rules, attachmentBytes }: PayloadPolicy,
  room?: AttachmentRoom,
): EncodedPayload {
  const given = payloadOf(field, value);
  const plain = plainJson(given, rules, WAYS[field]);
  // An object with `toJSON` or an unreadable proxy may be encoded as another type.
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

/** Returns a metadata key with the matches of redaction patterns masked. */
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

/** Returns the masked name of a run. */
export function shownName(name: string, { redaction }: PayloadRules): string {
  return shownText(name, redaction, NAME);
}

const CHUNK: Way = ['outputs', 'outputs', undefined];

/** Encodes the chunks of one result. Names such as `token` are not masked, because chunks use them for text. */
export class ChunkList {
  readonly #rules: PayloadRules;
  readonly #newAttachments: () => PayloadAttachments;
  readonly #keep: (attachments: readonly HeldAttachment[]) => void;
  readonly #json: string[] = [];
  /** String chunks that are not encoded yet. A string is immutable, so its encoding can wait. */
  #texts: string[] = [];

  /** `newAttachments` is called for each chunk that is not plain. `keep` receives the attachments of the chunk. */
  constructor(
    rules: PayloadRules,
    newAttachments: () => PayloadAttachments,
    keep: (attachments: readonly HeldAttachment[]) => void,
  ) {
    this.#rules = chunkRules(rules);
    this.#newAttachments = newAttachments;
    this.#keep = keep;
  }

  /** Records the current state of a chunk. Returns the approximate length of its JSON text. */
  add(chunk: unknown): number {
    // Paths and replacement functions apply to single chunks, and a data URI becomes an attachment.
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

/** Whether the JSON text of an object is valid, within the limits, and needs no masking. */
export function isPlainJson(text: string, { redaction, ...limits }: PayloadRules): boolean {
  const check = redaction === undefined ? unmasked : redaction.plain;
  try {
    return check?.isPlainJson(text, limits) === true;
  } catch {
    // Invalid JSON.
    return false;
  }
}

/** Returns the JSON text of a string. Replaces a lone surrogate, which strict services reject, with U+FFFD. */
export function jsonText(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

const OPENING_BRACE = 0x7b;
const NAME: Way = ['name'];
const KEYS: Readonly<Record<AttachingField, string>> = { inputs: 'input', outputs: 'outputs' };

/** The event for a chunk of model output. A `token` in its data is a piece of text, not a secret. */
const TOKEN_EVENT = 'new_token';

const unmasked = new PlainCheck();

/** Returns the JSON text of plain data, or undefined if the value must be copied, masked or truncated. */
function plainJson(value: unknown, rules: PayloadRules, way: Way): string | undefined {
  const { redaction } = rules;
  const check = redaction === undefined ? unmasked : redaction.plain;
  if (check === undefined) return undefined;
  const field = way.at(-1);
  if (typeof field === 'string' && check.isSpecial(field)) return undefined;
  try {
    return check.jsonOf(value, rules);
  } catch {
    // A getter or a proxy trap threw.
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
    // A value within the limits may still exceed the call stack or the maximum string length.
    return jsonText(failureText(thrown) ?? `[Threw: ${messageOf(thrown)}]`);
  }
}

function chunkRules(rules: PayloadRules): PayloadRules {
  return { ...rules, redaction: rules.redaction?.ofChunks };
}

/** Returns a plain object unchanged, `{}` for undefined, or an object that contains any other value. */
function payloadOf(field: AttachingField, value: unknown): unknown {
  if (value === undefined) return {};
  if (isLikeObject(value)) return value;
  // A computed key would more than double the time of this function.
  return field === 'inputs' ? { input: value } : { outputs: value };
}

/** Also true for a proxy, unless its target is an array. */
function isLikeObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return hasPlainPrototype(value) || (types.isProxy(value) && !Array.isArray(value));
  } catch {
    // The value is a revoked proxy.
    return false;
  }
}
