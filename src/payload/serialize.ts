import { ignoreErrors } from '../base/guard.ts';
import { messageOf } from '../base/text.ts';
import { types } from '../platform/node.ts';
import {
  type AttachingField,
  type AttachmentPolicy,
  type AttachmentRoom,
  PayloadAttachments,
  type WaitingAttachment,
} from './attachment.ts';
import { Copier } from './copy.ts';
import { exactJson, hasPlainPrototype, parseExact } from './fields.ts';
import { LazyPayload } from './lazy-payload.ts';
import { mayBeDataUri, PlainCheck } from './plain.ts';
import { matcherAt, type PathMatcher, trailOf, type ValuePath } from './redaction/paths.ts';
import { failureText, MASK, shownText } from './redaction/redact.ts';
import type { PayloadRules } from './truncate.ts';

/**
 * Encodes any value as JSON, with secrets masked and limits applied. Never throws. Plain data is checked and then
 * encoded with `JSON.stringify`, so each property is read twice. Other values, such as proxies, are copied first, and
 * each property is read once. In the copy:
 *
 * - Cycles become `[Circular]`, functions `[Function name]`, promises `[Promise]`, and unreadable proxies `[Proxy]`.
 *   Streams, iterators and symbols become a short description.
 * - A BigInt becomes `123n`, and a date becomes an ISO 8601 string. NaN and infinities become their names. URLs lose
 *   their user and password.
 * - Headers and Maps with string keys become objects. Other Maps become lists of pairs. Sets become lists.
 * - An Error becomes an object with its name, message, stack, cause and own properties.
 * - A Request, Response, Blob or File becomes an object with a `type`.
 * - Binary data becomes `{ type, byteLength, base64 }` with at most 1 KiB of data.
 * - In `encodePayload`, Blobs and larger binary data become `{ type, byteLength, attachment }`. Long data URIs become
 *   `[Attachment name: type, bytes]`.
 * - If a getter or `toJSON` throws, the value becomes `[Threw: message]`.
 * - Lone surrogates become U+FFFD, because strict services reject them.
 * - Values beyond a limit become a marker such as `[Truncated: 5 more items]`.
 * - Secrets become the mask.
 */
export function serialize(value: unknown, rules: PayloadRules, path: ValuePath = []): string {
  return plainJson(value, rules, path) ?? copiedJson(value, rules, path);
}

export interface EncodedPayload {
  readonly json: string;
  readonly attachments: readonly WaitingAttachment[] | undefined;
}

const PATHS: Readonly<Record<AttachingField, ValuePath>> = { inputs: ['inputs'], outputs: ['outputs'] };

export function isSamePayload(one: EncodedPayload, other: EncodedPayload): boolean {
  if (one.json !== other.json) return false;
  return (one.attachments ?? []).every(({ bytes }, at) => {
    const before = other.attachments?.[at]?.bytes;
    // Attachments of spans are never `Blob` objects.
    return bytes instanceof Uint8Array && before instanceof Uint8Array && Buffer.compare(bytes, before) === 0;
  });
}

/**
 * Encodes a payload as a JSON object. If the value is not a plain object, wraps it in an object with the property
 * `input` or `outputs`. `room` is undefined if the run has no attachments yet.
 */
export function encodePayload(
  field: AttachingField,
  value: unknown,
  policy: AttachmentPolicy,
  room?: AttachmentRoom,
): EncodedPayload {
  const given = payloadOf(field, value);
  const lazy = policy.isLazy
    ? ignoreErrors(() => new LazyPayload(given, policy.payload, (copy) => encoded(field, copy, policy).json))
    : undefined;
  return lazy ?? encoded(field, given, policy, room);
}

function encoded(
  field: AttachingField,
  given: unknown,
  { payload: rules, attachmentBytes }: AttachmentPolicy,
  room?: AttachmentRoom,
): EncodedPayload {
  const plain = plainJson(given, rules, PATHS[field]);
  // A proxy or an object with `toJSON` may be encoded as a string or an array.
  if (plain?.charCodeAt(0) === OPENING_BRACE) return { json: plain, attachments: undefined };
  const attachments = rules.isInline ? undefined : new PayloadAttachments(field, attachmentBytes, room);
  const json = copiedJson(given, rules, PATHS[field], attachments);
  if (json.charCodeAt(0) === OPENING_BRACE) return { json, attachments: attachments?.taken };
  const key = KEYS[field];
  const isMasked = matcherAt(rules.redaction?.root, [field, key])?.isMatch === true;
  return isMasked
    ? { json: `{"${key}":${jsonText(MASK)}}`, attachments: undefined }
    : { json: `{"${key}":${json}}`, attachments: attachments?.taken };
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

/** Returns the recorded name of a run. Services reject a run whose name redaction has emptied. */
export function shownName(name: string, { redaction }: PayloadRules): string {
  return shownText(name, redaction, NAME) || 'run';
}

const CHUNK: ValuePath = ['outputs', 'outputs', undefined];

/** Number of chunks that are searched for secrets at once, because a search of each short text takes longer. */
const CHUNKS_PER_SEARCH = 64;

/**
 * Encodes the chunks of one result. The application may change a chunk after it has received the chunk, so `add`
 * encodes objects immediately. Does not mask the key `token`, because in a chunk this key holds text.
 */
export class ChunkList {
  readonly #rules: PayloadRules;
  readonly #check: PlainCheck | undefined;
  readonly #newAttachments: () => PayloadAttachments;
  readonly #keep: (attachments: readonly WaitingAttachment[]) => void;
  /** JSON texts, each of one or several chunks. */
  readonly #json: string[] = [];
  /** Strings to encode together, because encoding them one at a time is slower. */
  #texts: string[] = [];
  /** JSON texts of chunks to search together. Empty if `#texts` is not empty. */
  #unsearched: string[] = [];

  /** `newAttachments` is called for each chunk that must be copied. `keep` receives the attachments of that chunk. */
  constructor(
    rules: PayloadRules,
    newAttachments: () => PayloadAttachments,
    keep: (attachments: readonly WaitingAttachment[]) => void,
  ) {
    this.#rules = chunkRules(rules);
    this.#check = plainCheckOf(this.#rules);
    this.#newAttachments = newAttachments;
    this.#keep = keep;
  }

  /** Adds a chunk and returns the approximate length of its JSON text. */
  add(chunk: unknown): number {
    // A possible data URI is encoded separately, because it may become an attachment.
    if (typeof chunk === 'string' && this.#check !== undefined && !mayBeDataUri(chunk)) {
      this.#search();
      this.#texts.push(chunk);
      return chunk.length + 2;
    }
    this.#encodeTexts();
    const json = this.#unsearchedJson(chunk);
    if (json === undefined) return this.#addCopied(chunk);
    if (this.#unsearched.push(json) >= CHUNKS_PER_SEARCH) this.#search();
    return json.length;
  }

  json(): string {
    this.#encodeTexts();
    this.#search();
    return `[${this.#json.join(',')}]`;
  }

  #unsearchedJson(chunk: unknown): string | undefined {
    try {
      return this.#check?.unsearchedJsonOf(chunk, this.#rules);
    } catch {
      // A getter or a proxy trap threw.
      return undefined;
    }
  }

  #addCopied(chunk: unknown): number {
    this.#search();
    const attachments = this.#rules.isInline ? undefined : this.#newAttachments();
    const json = copiedJson(chunk, this.#rules, CHUNK, attachments);
    if (attachments?.taken !== undefined) this.#keep(attachments.taken);
    this.#json.push(json);
    return json.length;
  }

  #search(): void {
    const unsearched = this.#unsearched;
    if (unsearched.length === 0) return;
    this.#unsearched = [];
    const joined = unsearched.join(',');
    if (this.#passesSearch(joined)) this.#json.push(joined);
    else for (const json of unsearched) this.#json.push(this.#passesSearch(json) ? json : this.#maskedJson(json));
  }

  #passesSearch(json: string): boolean {
    return this.#check?.passesSearch(json) === true;
  }

  /** Parses the text instead of reading the chunk again, because the application may have changed the chunk. */
  #maskedJson(json: string): string {
    return copiedJson(parseExact(json), this.#rules, CHUNK);
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

/** Returns the check for payloads that need no masking, or undefined if every value must be examined. */
export function plainCheckOf({ redaction }: PayloadRules): PlainCheck | undefined {
  return redaction === undefined ? unmasked : redaction.plain;
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
  const check = plainCheckOf(rules);
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
    return exactJson(new Copier(rules, matcher, trail, attachments).copy(value)) ?? 'null';
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
