import { hasPlainPrototype } from '../payload/describe.ts';

/** An object, or a function, of which nothing is known but that it has fields. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return isObject && !Array.isArray(value);
}

/** An object that is nothing but its fields. */
export function isPlainObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && hasPlainPrototype(value);
}

/** Without a prototype, so that a key named `__proto__` is data like any other. */
export function emptyFields(): Fields {
  return Object.create(null) as Fields;
}

/** Its fields; none of anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A finite number: some say NaN for what they do not know. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A list with each item mapped; the same list where none has become another, and anything else as it is. */
export function mapped(list: unknown, map: (item: unknown) => unknown): unknown {
  if (!Array.isArray(list)) return list;
  const items = list.map(map);
  return items.some((item, at) => item !== list[at]) ? items : list;
}

/** The object without these fields. */
export function without(object: Fields, keys: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.has(key)));
}

/** The fields of an object that have a value; undefined when there is none. */
export function defined<Value extends object>(object: Value): Value | undefined {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Value);
}
