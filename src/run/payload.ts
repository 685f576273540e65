import { type PayloadLimits, serialize } from './serialize.ts';

/**
 * JSON text of a payload. It is an object also where `toJSON`, or a proxy that cannot be read, makes something else of a
 * plain one.
 */
export function payloadJson(key: string, value: unknown, limits: PayloadLimits): string {
  const json = serialize(payloadOf(key, value), limits);
  return json.startsWith('{') ? json : `{"${key}":${json}}`;
}

/** A payload has to be an object: a plain one stands for itself, `undefined` for none, anything else gets a key. */
function payloadOf(key: string, value: unknown): Readonly<Record<string, unknown>> {
  if (value === undefined) return {};
  return isPlainObject(value) ? value : { [key]: value };
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  try {
    if (typeof value !== 'object' || value === null) return false;
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null;
  } catch {
    return false;
  }
}
