import { defined, type Fields, filled, isFields, parsedJson } from '../../payload/fields.ts';

/** A span's attributes. SDK 3.x allows objects as values. */
export type Attributes = Readonly<Record<string, unknown>>;

/** Converts an attribute's value. Returns undefined if the value has an unexpected type. */
export type Read = (value: unknown, attributes: Attributes) => unknown;

/**
 * Functions that only parse JSON text. If a function depends on a MIME type, its map value is the attribute that
 * contains this type: nothing is parsed for `text/plain`.
 */
const verbatim = new Map<Read, string | undefined>([
  [json, undefined],
  [anyJson, undefined],
  [jsonObject, undefined],
]);

const PLAIN_TEXT = 'text/plain';

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function same(value: unknown): unknown {
  return value;
}

/** Returns a finite number. Some instrumentations set numbers as text. */
export function number(value: unknown): number | undefined {
  if (typeof value !== 'number' && text(value) === undefined) return undefined;
  const result = Number(value);
  return Number.isFinite(result) ? result : undefined;
}

/** Returns a token count or cost, which is never negative. */
export function count(value: unknown): number | undefined {
  const result = number(value);
  return result === undefined || result < 0 ? undefined : result;
}

/** Returns an object of counts, which may nest further objects of counts. Drops all other values. */
export function counts(value: unknown): Fields | undefined {
  const given = jsonObject(value);
  return given && countsIn(given, true);
}

function countsIn(given: Fields, hasDetails: boolean): Fields {
  const entries = Object.entries(given).map(([key, item]) => [
    key,
    hasDetails && isFields(item) ? countsIn(item, false) : count(item),
  ]);
  return defined(Object.fromEntries(entries));
}

/** Parses text that looks like JSON. Returns other values and invalid JSON unchanged. */
export function json(value: unknown): unknown {
  return typeof value === 'string' && LOOKS_LIKE_JSON.test(value) ? parsedJson(value) : value;
}

/** Parses text that is always JSON, for example `7` or `true`. Returns invalid JSON unchanged. */
export function anyJson(value: unknown): unknown {
  return typeof value === 'string' ? parsedJson(value) : value;
}

/** Like `json`, but returns undefined if the result is not an object. */
export function jsonObject(value: unknown): Fields | undefined {
  const result = json(value);
  return isFields(result) ? result : undefined;
}

/**
 * Returns a function like `json` that respects the value's MIME type. `mimeType` names the attribute that may contain
 * this type.
 */
export function jsonAs(mimeType: string): Read {
  const read: Read = (value, attributes) => {
    const type = attributes[mimeType];
    if (typeof value !== 'string' || type === PLAIN_TEXT) return value;
    return type === 'application/json' ? parsedJson(value) : json(value);
  };
  verbatim.set(read, mimeType);
  return read;
}

/** Whether a function only parses JSON text, given these attributes. */
export function isVerbatim(read: Read, attributes: Attributes): boolean {
  if (!verbatim.has(read)) return false;
  const mimeType = verbatim.get(read);
  return mimeType === undefined || attributes[mimeType] !== PLAIN_TEXT;
}

/** Returns a list of texts from a list or its JSON text. A single text becomes a list. */
export function jsonTexts(value: unknown): string[] | undefined {
  return texts(json(value));
}

/** Returns a list of texts. A single text becomes a list. */
export function texts(value: unknown): string[] | undefined {
  return filled((Array.isArray(value) ? value : [value]).filter((item) => text(item) !== undefined));
}

export function isEmpty(fields: Attributes): boolean {
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

/** Returns the items of a list that are objects. */
export function objects(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

const LOOKS_LIKE_JSON = /^\s*[[{"]/;
