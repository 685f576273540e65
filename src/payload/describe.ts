import type { IncomingMessage, OutgoingMessage } from 'node:http';
import type { Stream } from 'node:stream';
import { messageOf } from '../base/text.ts';
import { nodeModule, types } from '../platform/node.ts';

/** Maximum size of binary values that stay in the payload as base64, in bytes. */
export const BINARY_BYTES_KEPT = 1_024;

/** The first items of a collection and the total number of items. */
export class Items {
  readonly items: readonly unknown[];
  readonly size: number;

  constructor(items: readonly unknown[], size: number) {
    this.items = items;
    this.size = size;
  }
}

/** The form in which a platform object is recorded: a primitive, a list of items, or an object with properties. */
export type Description = string | number | boolean | bigint | symbol | Items | Readonly<Record<string, unknown>>;

/**
 * Describes a platform object, for example a `Date` or a stream. Never reads a stream, awaits a promise or changes the
 * object. Reads at most `width` items of a set. Throws if a getter or method of the object throws.
 */
export function describe(value: object, width: number): Description | undefined {
  if (types.isDate(value)) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (types.isPromise(value)) return '[Promise]';
  if (types.isRegExp(value)) return String(value);
  if (types.isBoxedPrimitive(value)) return value.valueOf() as Description;
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) return binary(value);
  if (types.isSet(value)) return firstItems(Set.prototype.values.call(value), Set.prototype, value, width);
  if (value instanceof URL) return withoutCredentials(value.href);
  return iteratorKind(value) ?? webObject(value) ?? nodeStream(value);
}

export function mapEntries(map: ReadonlyMap<unknown, unknown>, width: number): Items {
  return firstItems(Map.prototype.entries.call(map as Map<unknown, unknown>), Map.prototype, map, width);
}

/** Whether a value is an Error. The Error may come from another realm, for example in a test runner. */
export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

export function errorKeys(error: object): readonly string[] {
  const named = ['name', 'message', 'stack', ...['cause', 'errors'].filter((key) => key in error)];
  return [...new Set([...named, ...Object.keys(error)])];
}

export function read(object: object, key: string | number): unknown {
  try {
    return (object as Record<string | number, unknown>)[key];
  } catch (thrown) {
    return threw(thrown);
  }
}

export function threw(thrown: unknown): string {
  return `[Threw: ${messageOf(thrown)}]`;
}

export function primitiveText(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return value.toString();
  const name = read(value as object, 'name');
  return `[Function ${typeof name === 'string' && name !== '' ? name : 'anonymous'}]`;
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** Decodes base64 text. Skips characters outside the base64 alphabet. */
export function fromBase64(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}

export function isBinary(value: unknown): value is ArrayBufferView | ArrayBufferLike {
  return ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
}

export function isBlob(value: unknown): value is Blob {
  return typeof Blob === 'function' && value instanceof Blob;
}

/** Returns the bytes of a binary value. Throws if the value's buffer was transferred to another thread. */
export function viewOf(value: ArrayBufferView | ArrayBufferLike): Uint8Array {
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value);
}

/** Reads `size` from `prototype`, because a subclass may override it. */
function firstItems(items: Iterator<unknown>, prototype: object, collection: object, width: number): Items {
  const kept: unknown[] = [];
  while (kept.length < width) {
    const { done, value } = items.next();
    if (done === true) break;
    kept.push(value);
  }
  return new Items(kept, Reflect.get(prototype, 'size', collection) as number);
}

function binary(value: ArrayBufferView | ArrayBufferLike): Description {
  const bytes = viewOf(value);
  const base64 = toBase64(bytes.subarray(0, BINARY_BYTES_KEPT));
  return { type: value.constructor.name, byteLength: bytes.byteLength, base64 };
}

function withoutCredentials(href: string): string {
  if (!URL.canParse(href)) return href;
  const url = new URL(href);
  url.username = '';
  url.password = '';
  return url.href;
}

function iteratorKind(value: object): string | undefined {
  if (types.isGeneratorObject(value)) return Symbol.asyncIterator in value ? '[AsyncGenerator]' : '[Generator]';
  if (types.isMapIterator(value) || types.isSetIterator(value)) return '[Iterator]';
  if (!('next' in value)) return undefined;
  if (Symbol.asyncIterator in value) return '[AsyncIterator]';
  return Symbol.iterator in value ? '[Iterator]' : undefined;
}

function webObject(value: object): Description | undefined {
  if (value instanceof Headers) return grouped(Headers.prototype.entries.call(value));
  if (value instanceof URLSearchParams) return grouped(URLSearchParams.prototype.entries.call(value));
  if (value instanceof FormData) return grouped(FormData.prototype.entries.call(value));
  if (value instanceof Request) {
    const { method, url, headers } = value;
    return { type: 'Request', method, url: withoutCredentials(url), headers };
  }
  if (value instanceof Response) {
    const { status, statusText, url, headers } = value;
    return { type: 'Response', status, statusText, url: withoutCredentials(url), headers };
  }
  if (isBlob(value)) {
    const { size: byteLength, type: mimeType } = value;
    const { name } = value as Blob & { name?: unknown };
    return { type: name === undefined ? 'Blob' : 'File', byteLength, mimeType, name };
  }
  if (value instanceof ReadableStream) return '[ReadableStream]';
  if (value instanceof WritableStream) return '[WritableStream]';
  return value instanceof TransformStream ? '[TransformStream]' : undefined;
}

function nodeStream(value: object): Description | undefined {
  if (!(value instanceof nodeModule('node:stream').Stream)) return undefined;
  const type = value.constructor.name;
  if (isIncoming(value)) {
    const { method, url, statusCode, headers } = value;
    return { type, method, url, statusCode: statusCode ?? undefined, headers };
  }
  if (!isOutgoing(value)) return `[${type}]`;
  const { method, path, statusCode } = value as OutgoingMessage & Record<'method' | 'path' | 'statusCode', unknown>;
  return { type, method, path, statusCode, headers: value.getHeaders() };
}

// Checks properties instead of classes, because importing `node:http` is slow and HTTP/2 uses other classes.
function isIncoming(stream: Stream): stream is IncomingMessage {
  return Array.isArray((stream as Partial<IncomingMessage>).rawHeaders);
}

function isOutgoing(stream: Stream): stream is OutgoingMessage {
  const { getHeaders, setHeader } = stream as Partial<OutgoingMessage>;
  return typeof getHeaders === 'function' && typeof setHeader === 'function';
}

/** Converts key-value pairs to an object. If a key is repeated, its values become a list. */
function grouped(pairs: Iterable<readonly [string, unknown]>): Readonly<Record<string, unknown>> {
  const lists = new Map<string, unknown[]>();
  for (const [key, value] of pairs) {
    const list = lists.get(key);
    if (list === undefined) lists.set(key, [value]);
    else list.push(value);
  }
  const object: Record<string, unknown> = Object.create(null);
  for (const [key, list] of lists) object[key] = list.length === 1 ? list[0] : list;
  return object;
}
