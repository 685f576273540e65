import { defined, definedOrNone, type Fields, filled, idTextOf, isFields, parsedJson } from '../../payload/fields.ts';
import { tokenCount, cost as validCost, validUsage } from '../../payload/usage.ts';

/** The attributes of a span. SDK 3.x allows objects as values. */
export type Attributes = Readonly<Record<string, unknown>>;

/** Converts an attribute value. Returns undefined if the value has an unexpected type. */
export type Read = (value: unknown, attributes: Attributes) => unknown;

/**
 * Functions that only parse JSON text. If a function needs a MIME type, its map entry contains the name of the
 * attribute that holds the type. Values of type `text/plain` are not parsed.
 */
const verbatim = new Map<Read, string | undefined>([
  [json, undefined],
  [anyJson, undefined],
  [jsonFields, undefined],
]);

const PLAIN_TEXT = 'text/plain';

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function same(value: unknown): unknown {
  return value;
}

/** Returns a finite number. Numbers as text are accepted, because some instrumentations set them. */
export function number(value: unknown): number | undefined {
  const result = typeof value === 'number' ? value : Number(idTextOf(value));
  return Number.isFinite(result) ? result : undefined;
}

export function countValue(value: unknown): number | undefined {
  return tokenCount(number(value));
}

export function costValue(value: unknown): number | undefined {
  return validCost(number(value));
}

/** Returns an object with counts, costs and nested objects of both. All other values are dropped. */
export function counts(value: unknown): Fields | undefined {
  const given = jsonFields(value);
  return given && definedOrNone(validUsage(given, number));
}

/** Parses text that looks like JSON. Returns other values and invalid JSON unchanged. */
export function json(value: unknown): unknown {
  return typeof value === 'string' && LOOKS_LIKE_JSON.test(value) ? parsedJson(value) : value;
}

/** Parses text that is always JSON, even `7` or `true`. Returns invalid JSON unchanged. */
export function anyJson(value: unknown): unknown {
  return typeof value === 'string' ? parsedJson(value) : value;
}

export function jsonFields(value: unknown): Fields | undefined {
  const result = json(value);
  return isFields(result) ? result : undefined;
}

/** Returns a function like `json` that respects the MIME type in the attribute `mimeType`. */
export function jsonAs(mimeType: string): Read {
  const read: Read = (value, attributes) => {
    const type = attributes[mimeType];
    if (typeof value !== 'string' || type === PLAIN_TEXT) return value;
    return type === 'application/json' ? parsedJson(value) : json(value);
  };
  verbatim.set(read, mimeType);
  return read;
}

/** Returns whether `read` only parses JSON text for a span with these attributes. */
export function isVerbatim(read: Read, attributes: Attributes): boolean {
  if (!verbatim.has(read)) return false;
  const mimeType = verbatim.get(read);
  return mimeType === undefined || attributes[mimeType] !== PLAIN_TEXT;
}

export function jsonTexts(value: unknown): string[] | undefined {
  return texts(json(value));
}

/** Returns a list of strings. A single string becomes a list. */
export function texts(value: unknown): string[] | undefined {
  return filled((Array.isArray(value) ? value : [value]).filter((item) => text(item) !== undefined));
}

export function hasNoFields(fields: Attributes): boolean {
  for (const _ in fields) return false;
  return true;
}

/** Returns a function that converts times to whole microseconds. `each` is the number of microseconds per unit. */
export function microseconds(each: number): Read {
  return (value) => {
    const time = number(value);
    return time === undefined || time < 0 ? undefined : Math.floor(time * each);
  };
}

export function objects(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

const LOOKS_LIKE_JSON = /^\s*[[{"]/;

/** Metadata keys that other libraries and applications use for `thread_id`, in order of precedence. */
const THREAD_KEYS: readonly string[] = [
  ...['session_id', 'conversation_id', 'chat_id'],
  ...['threadId', 'sessionId', 'conversationId', 'chatId'],
];

/** Adds `thread_id` and `user_id`, unless the metadata already contains them. Keeps the original keys. */
export function withThreadAndUser(metadata: Fields): Fields {
  const thread_id = THREAD_KEYS.map((key) => idTextOf(metadata[key])).find(Boolean);
  return { ...defined({ thread_id, user_id: idTextOf(metadata.userId) }), ...metadata };
}
