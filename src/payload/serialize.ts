import { types } from '../base/node.ts';
import { messageOf } from '../base/text.ts';
import { type AttachingField, type AttachmentRoom, type HeldAttachment, PayloadAttachments } from './attachment.ts';
import { Copier } from './copy.ts';
import { hasPlainPrototype } from './describe.ts';
import type { PayloadRules } from './limits.ts';
import { mayBeDataUri, PlainCheck } from './plain.ts';
import { failureText, MASK, shownText } from './redact.ts';
import { matcherAt, type PathMatcher, trailOf, type ValuePath } from './redaction-paths.ts';

/**
 * Encodes any value as JSON, with secrets masked and limits applied. Never throws. Plain data is checked and then
 * encoded with `JSON.stringify`, so each property is read twice. Other values are copied first. The copy contains:
 *
 * - `[Circular]` for a cycle, `[Function name]` for a function, `[Promise]` for a promise, the kind of a stream or
 *   iterator, the description of a symbol, `[Proxy]` for an unreadable proxy;
 * - `123n` for a BigInt, the name of NaN or an infinity, a date in ISO 8601, and a URL without user and password;
 * - an object for Headers or a Map with string keys, a list of pairs for any other Map, and a list for a Set;
 * - an object with the name, message, stack, cause and own properties of an Error;
 * - an object with a `type` for a Request, Response, Blob or File;
 * - `{ type, byteLength, base64 }` with at most 1 KiB for binary data;
 * - if `attachments` is set, `{ type, byteLength, attachment }` for larger binary data and for Blobs, and `[Attachment
 *   name: type, bytes]` for long data URIs;
 * - `[Threw: message]` for a getter or `toJSON` that throws;
 * - U+FFFD for a lone surrogate, because strict services reject lone surrogates;
 * - a marker such as `[Truncated: 5 more items]` for values beyond a limit;
 * - the mask for each value that must be masked.
 */
export function serialize(
  value: unknown,
  rules: PayloadRules,
  path: ValuePath = [],
  attachments?: PayloadAttachments,
): string {
  return plainJson(value, rules, path) ?? copiedJson(value, rules, path, attachments);
}

export interface EncodedPayload {
  readonly json: string;
  readonly attachments: readonly HeldAttachment[] | undefined;
}

interface PayloadPolicy {
  readonly payload: PayloadRules;
  /** Maximum total size of a run's attachments, in bytes. */
  readonly attachmentBytes: number;
}

const PATHS: Readonly<Record<AttachingField, ValuePath>> = { inputs: ['inputs'], outputs: ['outputs'] };

/**
 * Encodes a payload as a JSON object. If the value is not a plain object, it becomes the property `input` or `outputs`
 * of an object. `room` is undefined if the run has no attachments yet.
 */
export function encodePayload(
  field: AttachingField,
  value: unknown,
  { payload: rules, attachmentBytes }: PayloadPolicy,
  room?: AttachmentRoom,
): EncodedPayload {
  const given = payloadOf(field, value);
  const plain = plainJson(given, rules, PATHS[field]);
  // A proxy or an object with `toJSON` may be encoded as a string or an array.
  if (plain?.charCodeAt(0) === OPENING_BRACE) return { json: plain, attachments: undefined };
  const attachments = new PayloadAttachments(field, attachmentBytes, room);
  const json = copiedJson(given, rules, PATHS[field], attachments);
  if (json.charCodeAt(0) === OPENING_BRACE) return { json, attachments: attachments.taken };
  const key = KEYS[field];
  const isMasked = matcherAt(rules.redaction?.root, [field, key])?.isMatch === true;
  return isMasked
    ? { json: `{"${key}":${jsonText(MASK)}}`, attachments: undefined }
    : { json: `{"${key}":${json}}`, attachments: attachments.taken };
}

export function metadataKey(key: string, { redaction }: PayloadRules): string {
  return redaction === undefined || redaction.plain !== undefined || redaction.hidesAll
    ? key
    : shownText(key, redaction, []);
}

export function metadataJson(key: string, value: unknown, rules: PayloadRules): string {
  return serialize(value, rules, ['metadata', key]);
}

export function eventJson(name: string, time: string, data: unknown, rules: PayloadRules): string {
  const shown = name === TOKEN_EVENT ? chunkRules(rules) : rules;
  const kwargs = data === undefined ? '' : `,"kwargs":${serialize(data, shown, ['events', undefined, 'kwargs'])}`;
  const shownName = shownText(name, rules.redaction, ['events', undefined, 'name']);
  return `{"name":${jsonText(shownName)},"time":"${time}"${kwargs}}`;
}

export function shownName(name: string, { redaction }: PayloadRules): string {
  return shownText(name, redaction, NAME);
}

const CHUNK: ValuePath = ['outputs', 'outputs', undefined];

/** Encodes the chunks of one result. Does not mask the key `token`, because in a chunk this key holds text. */
export class ChunkList {
  readonly #rules: PayloadRules;
  readonly #newAttachments: () => PayloadAttachments;
  readonly #keep: (attachments: readonly HeldAttachment[]) => void;
  readonly #json: string[] = [];
  /** Strings to encode together, because encoding them one at a time is slower. */
  #texts: string[] = [];

  /** `newAttachments` is called for each chunk that must be copied. `keep` receives the attachments of that chunk. */
  constructor(
    rules: PayloadRules,
    newAttachments: () => PayloadAttachments,
    keep: (attachments: readonly HeldAttachment[]) => void,
  ) {
    this.#rules = chunkRules(rules);
    this.#newAttachments = newAttachments;
    this.#keep = keep;
  }

  /** Adds a chunk and returns the approximate length of its JSON text. */
  add(chunk: unknown): number {
    // Strings are encoded separately if redaction paths, patterns or a replacement function are configured. A possible
    // data URI is also encoded separately, because it may become an attachment.
    if (typeof chunk === 'string' && this.#areTextsAlike && !mayBeDataUri(chunk)) {
      this.#texts.push(chunk);
      return chunk.length + 2;
    }
    this.#encodeTexts();
    const json = plainJson(chunk, this.#rules, CHUNK) ?? this.#copied(chunk);
    this.#json.push(json);
    return json.length;
  }

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

/**
 * Whether JSON text is within the limits and needs no masking, so that it can be recorded unchanged. `value` is the
 * parsed text.
 */
export function isPlainJson(text: string, value: object, rules: PayloadRules): boolean {
  const { redaction } = rules;
  const check = redaction === undefined ? unmasked : redaction.plain;
  return check?.isPlainJson(text, value, rules) === true;
}

/** Replaces each lone surrogate with U+FFFD, because strict services reject lone surrogates. */
export function jsonText(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

const OPENING_BRACE = 0x7b;
const NAME: ValuePath = ['name'];
const KEYS: Readonly<Record<AttachingField, string>> = { inputs: 'input', outputs: 'outputs' };

/** Name of the event for a chunk of model output. In this event, the key `token` holds text, not a secret. */
const TOKEN_EVENT = 'new_token';

const unmasked = new PlainCheck();

/** Encodes plain data as JSON. Returns undefined if the value must be copied, masked or truncated. */
function plainJson(value: unknown, rules: PayloadRules, path: ValuePath): string | undefined {
  const { redaction } = rules;
  const check = redaction === undefined ? unmasked : redaction.plain;
  if (check === undefined) return undefined;
  const field = path.at(-1);
  if (typeof field === 'string' && check.isSpecial(field)) return undefined;
  try {
    return check.jsonOf(value, rules);
  } catch {
    // A getter or a proxy trap threw.
    return undefined;
  }
}

function copiedJson(value: unknown, rules: PayloadRules, path: ValuePath, attachments?: PayloadAttachments): string {
  const { redaction } = rules;
  try {
    if (redaction?.hidesAll) return jsonText(MASK);
    const trail = trailOf(path);
    let matcher: PathMatcher | undefined;
    if (redaction !== undefined) {
      matcher = matcherAt(redaction.root, path);
      const field = path.at(-1);
      const isNamed = typeof field === 'string' && redaction.names?.hides(field, value, {}) === true;
      if (isNamed || matcher?.isMatch === true) return jsonText(redaction.mask(value, trail));
    }
    return JSON.stringify(new Copier(rules, matcher, trail, attachments).copy(value)) ?? 'null';
  } catch (thrown) {
    attachments?.clear();
    // Even within the limits, a value may exceed the call stack or the maximum string length.
    return jsonText(failureText(thrown) ?? `[Threw: ${messageOf(thrown)}]`);
  }
}

function chunkRules(rules: PayloadRules): PayloadRules {
  return { ...rules, redaction: rules.redaction?.ofChunks };
}

function payloadOf(field: AttachingField, value: unknown): unknown {
  if (value === undefined) return {};
  if (isLikeObject(value)) return value;
  // A computed key would make this function more than twice as slow.
  return field === 'inputs' ? { input: value } : { outputs: value };
}

function isLikeObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return hasPlainPrototype(value) || (types.isProxy(value) && !Array.isArray(value));
  } catch {
    // The value is a revoked proxy.
    return false;
  }
}
