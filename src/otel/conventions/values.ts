/** The attributes of a span. Values are whatever the instrumentation set: in SDK 3.x objects too. */
export type Attributes = Readonly<Record<string, unknown>>;

/** A payload, or a part of one. */
export type Fields = Record<string, unknown>;

/** What a row of a table makes of a value; undefined when the value is not of its kind. */
export type Read = (value: unknown, attributes: Attributes) => unknown;

/** Those that make of JSON text all that it says, and nothing else; with the attribute that may call it no JSON. */
const verbatim = new WeakMap<Read, string | undefined>([
  [json, undefined],
  [anyJson, undefined],
  [jsonObject, undefined],
]);

const PLAIN_TEXT = 'text/plain';

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The value as it is. */
export function same(value: unknown): unknown {
  return value;
}

/** A finite number; instrumentations give some as text. */
export function number(value: unknown): number | undefined {
  if (typeof value !== 'number' && text(value) === undefined) return undefined;
  const result = Number(value);
  return Number.isFinite(result) ? result : undefined;
}

/** A number of tokens, or what they cost: none is below zero. */
export function count(value: unknown): number | undefined {
  const result = number(value);
  return result === undefined || result < 0 ? undefined : result;
}

/** An object of counts, and of objects of them one level deeper; what else it holds is left out. */
export function counts(value: unknown): Fields | undefined {
  const given = jsonObject(value);
  return given && countsIn(given, true);
}

function countsIn(given: Fields, hasDetails: boolean): Fields {
  const entries = Object.entries(given).map(([key, item]) => [
    key,
    hasDetails && isObject(item) ? countsIn(item, false) : count(item),
  ]);
  return defined(Object.fromEntries(entries));
}

/** What JSON text stands for, where the value looks like it; anything else, and broken JSON, as it is. */
export function json(value: unknown): unknown {
  return typeof value === 'string' && LOOKS_LIKE_JSON.test(value) ? parsed(value) : value;
}

/** What JSON text stands for, also a number or a word; for what is always written as JSON. */
export function anyJson(value: unknown): unknown {
  return typeof value === 'string' ? parsed(value) : value;
}

/** The same as `json`, when it comes to a plain object. */
export function jsonObject(value: unknown): Fields | undefined {
  const result = json(value);
  return isObject(result) ? result : undefined;
}

/** The same for a value whose attribute `mimeType` says what it is; without it the value is looked at. */
export function jsonAs(mimeType: string): Read {
  const read: Read = (value, attributes) => {
    const type = attributes[mimeType];
    if (typeof value !== 'string' || type === PLAIN_TEXT) return value;
    return type === 'application/json' ? parsed(value) : json(value);
  };
  verbatim.set(read, mimeType);
  return read;
}

/** Whether what it makes of JSON text is all that the text says, and nothing else. */
export function isVerbatim(read: Read, attributes: Attributes): boolean {
  if (!verbatim.has(read)) return false;
  const mimeType = verbatim.get(read);
  return mimeType === undefined || attributes[mimeType] !== PLAIN_TEXT;
}

/** A list of text, also as JSON; one text alone is a list of one. */
export function jsonTexts(value: unknown): string[] | undefined {
  return texts(json(value));
}

/** A list of text; one text alone is a list of one. */
export function texts(value: unknown): string[] | undefined {
  return filled((Array.isArray(value) ? value : [value]).filter((item) => text(item) !== undefined));
}

/** Neither a list nor, as SDK 3.x allows them, bytes. */
export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

export function isEmpty(fields: Attributes): boolean {
  for (const _ in fields) return false;
  return true;
}

/** A list that has something in it. */
export function filled<Item>(items: Item[]): Item[] | undefined {
  return items.length === 0 ? undefined : items;
}

/** Whole microseconds of a time whose unit has so many of them; undefined for one that is below zero. */
export function microseconds(each: number): Read {
  return (value) => {
    const time = number(value);
    return time === undefined || time < 0 ? undefined : Math.floor(time * each);
  };
}

/** The value as a list of objects; what else it holds is left out. */
export function objects(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Without the keys whose value is undefined, so that they do not count as said. */
export function defined(fields: Fields): Fields {
  const result: Fields = {};
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    // Set, it would be what the result inherits from.
    if (key === '__proto__') Object.defineProperty(result, key, { value, enumerable: true });
    else result[key] = value;
  }
  return result;
}

const LOOKS_LIKE_JSON = /^\s*[[{"]/;

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}
