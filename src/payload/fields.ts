/** An object or function with unknown properties. */
export type Fields = Record<string, unknown>;

/** Whether a value is an object or a function, but not an array, bytes or a number. */
export function isFields(value: unknown): value is Fields {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return isObject && !Array.isArray(value) && !ArrayBuffer.isView(value) && !(mark && value instanceof ExactNumber);
}

/** Whether a value is a plain object, not an instance of a class. */
export function isPlainObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && hasPlainPrototype(value);
}

export function hasPlainPrototype(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns an object without a prototype, so that `__proto__` is an ordinary key. */
export function emptyFields(): Fields {
  return Object.create(null) as Fields;
}

/** Returns objects unchanged. Returns `{}` for any other value. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function firstText(...values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === 'string' && value !== '');
}

/**
 * Returns numbers unchanged. Returns undefined for other values and for `NaN`, which some services report for unknown
 * counts.
 */
export function numberOf(value: unknown): number | undefined {
  const number = mark && value instanceof ExactNumber ? Number(value) : value;
  return Number.isFinite(number) ? (number as number) : undefined;
}

/** Returns an id as text. Some applications have numbers as ids. */
export function idTextOf(value: unknown): string | undefined {
  return firstText(numberOf(value) === undefined ? value : `${value}`);
}

export function signalOf(value: unknown): AbortSignal | undefined {
  return value instanceof AbortSignal ? value : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Maps a list. Returns the same array if no item changes. Values that are not arrays are returned unchanged. */
export function mapped(list: unknown, map: (item: unknown) => unknown): unknown {
  if (!Array.isArray(list)) return list;
  const items = list.map(map);
  return items.some((item, at) => item !== list[at]) ? items : list;
}

/** Returns the array, or undefined if the array is empty. */
export function filled<List extends readonly unknown[]>(items: List): List | undefined {
  return items.length === 0 ? undefined : items;
}

export function without(object: Fields, keys: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.has(key)));
}

export function withValues(object: Fields, map: (value: unknown, key: string) => unknown): Fields {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

/** Adds up the numbers in two objects and in their nested objects. Other values are those of `one`. */
export function sumOfCounts(one: Fields, other: Fields): Fields {
  const sum = { ...one };
  for (const [key, value] of Object.entries(other)) {
    if (numberOf(value) !== undefined) sum[key] = (numberOf(sum[key]) ?? 0) + Number(value);
    else if (isFields(value)) sum[key] = sumOfCounts(fieldsOf(sum[key]), value);
  }
  return sum;
}

type Defined<Value extends object> = { [Key in keyof Value]?: Exclude<Value[Key], undefined> };

/** Returns a copy without undefined properties. */
export function defined<Value extends object>(object: Value): Defined<Value> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<Value>;
}

/** Returns a copy without undefined properties, or undefined if the copy is empty. */
export function definedOrNone<Value extends object>(object: Value): Defined<Value> | undefined {
  const fields = defined(object);
  return Object.keys(fields).length === 0 ? undefined : fields;
}

/** Parses JSON. Returns invalid JSON and undefined unchanged. */
export function parsedJson(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return parseExact(json);
  } catch {
    return json;
  }
}

/** Adds a property. Assigning to `__proto__` would change the prototype instead. */
export function put(object: object, key: string, value: unknown): void {
  if (key !== '__proto__') (object as Record<string, unknown>)[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns a copy of an object with some values replaced. The original object may be frozen. */
export function copyWith(object: Fields, changes: Fields): Fields {
  const properties = Object.getOwnPropertyDescriptors(object);
  for (const [key, value] of Object.entries(changes)) properties[key] = { ...properties[key], value };
  return Object.create(Object.getPrototypeOf(object), properties);
}

/** A number that a double cannot hold, such as an id of 64 bits. `JSON.stringify` writes a string of the digits. */
export class ExactNumber {
  readonly digits: string = '';

  toJSON(): string {
    if (markCount === undefined) return this.digits;
    markCount += 1;
    return mark + this.digits;
  }

  toString(): string {
    return this.digits;
  }
}

/** Precedes digits in a text. Random, so that no string begins with it. While it is empty, there is no `ExactNumber`. */
let mark = '';
let markCount: number | undefined;

const exactNumber = (digits: string): unknown => Object.assign(new ExactNumber(), { digits });

/** Parses JSON. `convert` is called with each number that a double cannot hold. The application gets strings of them. */
export function parseExact<Value>(text: string, convert: (digits: string) => unknown = exactNumber): Value {
  const value: Value = JSON.parse(text);
  if (!mayBeInexact(text)) return value;
  mark ||= `exact ${Math.random()} `;
  let isString = false;
  const parts = text.split('"').map((part) => {
    const wasString = isString;
    isString = !wasString || isEscaped(part, part.length);
    return wasString ? part : part.replace(/-?\d[\d.eE+-]{14,}/g, marked);
  });
  const exact = parts.join('"');
  const revived = (_: string, one: unknown): unknown =>
    typeof one === 'string' && one.startsWith(mark) ? convert(one.slice(mark.length)) : one;
  try {
    return exact === text ? value : JSON.parse(exact, revived);
  } catch {
    // With a reviver, `JSON.parse` exceeds the call stack after some thousand nested levels.
    return value;
  }
}

function marked(number: string): string {
  return `${Number(number)}` === number ? number : `"${mark}${number}"`;
}

const BACKSLASH = 0x5c;

/**
 * Whether a backslash escapes the character at index `at` in JSON text. A character is escaped if an odd number of
 * backslashes precede it.
 */
export function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}

/** Whether a text may contain a number of 16 characters or more. A double holds the digits of all shorter numbers. */
function mayBeInexact(text: string): boolean {
  // The point and the digits in ASCII. The slash is between them.
  const isDigit = (code: number): boolean => code <= 0x39 && code >= 0x2e;
  for (let end = 15; end < text.length; end += 16) {
    if (!isDigit(text.charCodeAt(end))) continue;
    let start = end - 1;
    while (isDigit(text.charCodeAt(start))) start -= 1;
    do end += 1;
    while (isDigit(text.charCodeAt(end)));
    if (end - start > 16 && text[start] !== '"') return true;
  }
  return false;
}

/** Writes JSON like `JSON.stringify`, except that an `ExactNumber` becomes a number. */
export function exactJson(value: unknown, space?: number): string {
  markCount = 0;
  try {
    const json = JSON.stringify(value, undefined, space);
    return markCount === 0 ? json : json.replace(new RegExp(`"${mark}([^"]+)"`, 'g'), '$1');
  } finally {
    markCount = undefined;
  }
}
