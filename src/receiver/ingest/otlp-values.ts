import { cut } from '../../base/text.ts';
import { idTextOf, isFields, listOf, parseExact } from '../../payload/fields.ts';
import { HttpError } from '../http/http-error.ts';

export type Fields = Readonly<Record<string, unknown>>;

export function isZero(value: unknown): boolean {
  return typeof value === 'string' ? /^0*$/.test(value) : value === null || value === 0 || value === BigInt(0);
}

export function parseId(value: unknown, length: number): string | undefined {
  if (typeof value !== 'string' || value.length !== length || !/^[0-9a-f]+$/i.test(value)) return undefined;
  return /[^0]/.test(value) ? value.toLowerCase() : undefined;
}

const NANOSECONDS = BigInt(1_000_000_000);
/** Latest accepted time, in seconds since 1970. Later times in microseconds would exceed `Number.MAX_SAFE_INTEGER`. */
const SECONDS_MAX = BigInt(Date.UTC(2255, 0) / 1_000);

/** Parses a timestamp to seconds and nanoseconds. Returns undefined if the value is invalid. */
export function parseTime(value: unknown): [number, number] | undefined {
  const all = integerIn(value);
  if (all === undefined) return undefined;
  const seconds = all / NANOSECONDS;
  if (all < 0 || seconds >= SECONDS_MAX || isInOtherUnit(Number(all))) return undefined;
  return [Number(seconds), Number(all % NANOSECONDS)];
}

/** The years 2000 and 2255 in seconds. */
const [UNIT_MIN, UNIT_MAX] = [946_684_800, 8_993_808_000];

/** Returns whether a time is one between 2000 and 2255 in seconds, milliseconds or microseconds. */
function isInOtherUnit(time: number): boolean {
  return [1, 1e3, 1e6].some((perSecond) => time >= UNIT_MIN * perSecond && time < UNIT_MAX * perSecond);
}

/** Called with a description of a part that is malformed and is left out. */
export type Warn = (problem: string) => void;

const silently: Warn = () => {};

/** Converts a list of `KeyValue`. `Object.fromEntries` defines own properties, so the key `__proto__` is safe. */
export function attributesIn(list: unknown, warn: Warn = silently): Record<string, unknown> {
  if (!Array.isArray(list ?? [])) warn('Expected `attributes` to be an array of objects with `key` and `value`');
  const entries = listOf(list).flatMap((item) => {
    const value = isFields(item) ? anyValueOf(item.value, warn) : undefined;
    return isFields(item) && typeof item.key === 'string' && value !== undefined ? [[item.key, value]] : [];
  });
  return Object.fromEntries(entries);
}

/** Converts an `AnyValue` to the value that OpenTelemetry SDKs use. Returns undefined if the `AnyValue` is empty. */
export function anyValueOf(value: unknown, warn: Warn = silently): unknown {
  if (value === undefined || value === null) return undefined;
  if (!isFields(value)) return malformed(value, warn);
  const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue, bytesValue } = value;
  if (typeof stringValue === 'string') return stringValue;
  if (typeof boolValue === 'boolean') return boolValue;
  const scalar = intOf(intValue) ?? numberIn(doubleValue);
  if (scalar !== undefined) return scalar;
  if (isFields(arrayValue)) return listOf(arrayValue.values).map((item) => anyValueOf(item, warn));
  if (isFields(kvlistValue)) return attributesIn(kvlistValue.values, warn);
  if (bytesValue instanceof Uint8Array) return bytesValue;
  if (typeof bytesValue === 'string') return Uint8Array.from(Buffer.from(bytesValue, 'base64'));
  return Object.values(value).every((one) => one === null) ? undefined : malformed(value, warn);
}

function malformed(value: unknown, warn: Warn): undefined {
  const given = isFields(value) ? Object.keys(value).join() : JSON.stringify(value);
  warn(`Expected a value such as { "stringValue": "text" } or { "intValue": "1" }, got ${cut(`${given}`, 100)}`);
}

/** Returns a 64-bit integer with all its digits. */
function intOf(value: unknown): unknown {
  const int = integerIn(value);
  if (int === undefined || BigInt.asIntN(64, int) !== int) return undefined;
  return typeof value === 'number' ? value : parseExact(`${int}`);
}

/** Text of a number in protobuf's JSON format, which also allows numbers as text: https://protobuf.dev/programming-guides/json/ */
const NUMBER = /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity)$/;

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' ? value : NUMBER.test(idTextOf(value) ?? '') ? Number(value) : undefined;
}

/** Returns an integer. Its text may have an exponent or decimal zeros. */
function integerIn(value: unknown): bigint | undefined {
  if (typeof value === 'bigint' || /^-?\d{1,20}$/.test(idTextOf(value) ?? '')) return BigInt(`${value}`);
  const number = numberIn(value) ?? Number.NaN;
  return Number.isInteger(number) ? BigInt(number) : undefined;
}

export function countOrZero(value: unknown): number {
  const count = Number(integerIn(value));
  return Number.isSafeInteger(count) && count >= 0 ? count : 0;
}

export function attributeText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/**
 * Reads the lists of records of a request, and of groups of records. Counts the items of a list that stands in place of
 * one that is empty, for example under its former name: these records would be lost. Other unknown fields are ignored.
 */
export class RecordLists {
  unread = 0;
  problem = '';

  in(fields: Fields, name: string): Record<string, unknown>[] {
    const list = listIn(fields, name);
    const other =
      list.length > 0 ? undefined : Object.keys(fields).find((field) => listOf(fields[field]).some(isFields));
    if (other === undefined) return list;
    this.unread += listOf(fields[other]).length;
    this.problem ||= `Expected \`${name}\`, got \`${cut(other, 100)}\`, which is not read`;
    return list;
  }

  /** Throws an HTTP 400 error if nothing else of the request was read. */
  throwIfAlone(others: number): void {
    if (this.unread > 0 && others === 0) throw new HttpError(400, this.problem);
  }
}

export function listIn(fields: Fields, name: string): Record<string, unknown>[] {
  const list = fields[name] ?? [];
  if (!Array.isArray(list)) throw new HttpError(400, `Expected \`${name}\` to be an array`);
  return list.map((item) => objectIn(item, `An item of \`${name}\``));
}

export function objectIn(value: unknown, what: string): Record<string, unknown> {
  if (!isFields(value)) throw new HttpError(400, `${what} is not an object`);
  return value;
}
