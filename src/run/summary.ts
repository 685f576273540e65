import type { IncomingMessage, OutgoingMessage } from 'node:http';
import { Stream } from 'node:stream';
import { types } from 'node:util';
import { BINARY_BYTES_KEPT } from './payload-attachments.ts';

const BINARY_KEYS_CHARACTERS = 'type'.length + 'byteLength'.length + 'base64'.length;

/** What stands for a value: text or a number, a list, or an object without a prototype. */
export type Summary = string | number | boolean | Some | Readonly<Record<string, unknown>>;

/** Items that were taken of a collection, and of how many. */
export class Some {
  readonly items: readonly unknown[];
  readonly size: number;

  constructor(items: readonly unknown[], size: number) {
    this.items = items;
    this.size = size;
  }
}

/**
 * What stands for an object of the platform whose own properties do not tell what it is; undefined for any other. Nothing is
 * consumed, awaited or changed, and at most `width` items and so many `characters` are taken of it. It may throw, where the
 * application has put code of its own into the object.
 */
export function summaryOf(value: object, width: number, characters: number): Summary | undefined {
  if (types.isDate(value)) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (types.isPromise(value)) return '[Promise]';
  if (types.isRegExp(value)) return String(value);
  if (types.isBoxedPrimitive(value)) return boxed(value);
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) return binary(value, characters);
  if (types.isSet(value)) return some(setValues.call(value), setSize.call(value), width);
  if (value instanceof URL) return withoutCredentials(value.href);
  return iteratorKind(value) ?? webSummary(value, width) ?? streamSummary(value);
}

/** What a map holds, as pairs. */
export function mapEntries(map: ReadonlyMap<unknown, unknown>, width: number): Some {
  return some(mapPairs.call(map as Map<unknown, unknown>), mapSize.call(map), width);
}

/** Also an error of another realm, as tests run their programs in. */
export function isError(value: object): boolean {
  return types.isNativeError(value) || value instanceof Error;
}

/** The properties of an error that are told: its own, and those that matter wherever they are. */
export function errorKeys(error: object): readonly string[] {
  const named = ['name', 'message', 'stack', ...['cause', 'errors'].filter((key) => key in error)];
  return [...new Set([...named, ...Object.keys(error)])];
}

// The ways of the platform: those of the object itself can be code of the application.
const mapPairs = Map.prototype.entries;
const setValues = Set.prototype.values;
const mapSize = getter(Map.prototype, 'size');
const setSize = getter(Set.prototype, 'size');

function getter(prototype: object, key: string): () => number {
  return Object.getOwnPropertyDescriptor(prototype, key)?.get as () => number;
}

function some(items: Iterator<unknown>, size: number, width: number): Some {
  const kept: unknown[] = [];
  while (kept.length < width) {
    const { done, value } = items.next();
    if (done === true) break;
    kept.push(value);
  }
  return new Some(kept, Math.max(size, kept.length));
}

function boxed(value: object): string | number | boolean {
  const primitive: unknown = value.valueOf();
  if (typeof primitive === 'number' || typeof primitive === 'boolean') return primitive;
  return typeof primitive === 'bigint' ? `${primitive}n` : String(primitive);
}

function binary(value: ArrayBufferView | ArrayBufferLike, characters: number): Summary {
  const bytes = ArrayBuffer.isView(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.from(value);
  const type = value.constructor.name;
  const room = Math.max(0, characters - BINARY_KEYS_CHARACTERS - type.length);
  const base64 = bytes.subarray(0, Math.min(BINARY_BYTES_KEPT, Math.floor(room / 4) * 3)).toString('base64');
  return { type, byteLength: bytes.byteLength, base64 };
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

function webSummary(value: object, width: number): Summary | undefined {
  if (value instanceof Headers) return keyed(Headers.prototype.entries.call(value), width);
  if (value instanceof URLSearchParams) return keyed(URLSearchParams.prototype.entries.call(value), width);
  if (value instanceof FormData) return keyed(FormData.prototype.entries.call(value), width);
  if (value instanceof Request) {
    const { method, url, headers } = value;
    return { type: 'Request', method, url: withoutCredentials(url), headers };
  }
  if (value instanceof Response) {
    const { status, statusText, url, headers } = value;
    return { type: 'Response', status, statusText, url: withoutCredentials(url), headers };
  }
  if (value instanceof Blob) {
    const { size: byteLength, type: mimeType } = value;
    const { name } = value as Blob & { name?: unknown };
    return { type: name === undefined ? 'Blob' : 'File', byteLength, mimeType, name };
  }
  if (value instanceof ReadableStream) return '[ReadableStream]';
  if (value instanceof WritableStream) return '[WritableStream]';
  return value instanceof TransformStream ? '[TransformStream]' : undefined;
}

/** Streams of Node by their class; what comes and goes over HTTP with what a program would look for in it. */
function streamSummary(value: object): Summary | undefined {
  if (!(value instanceof Stream)) return undefined;
  const type = value.constructor.name;
  if (isIncoming(value)) {
    const { method, url, statusCode, headers } = value;
    return { type, method, url, statusCode: statusCode ?? undefined, headers };
  }
  if (!isOutgoing(value)) return `[${type}]`;
  const { method, path, statusCode } = value as OutgoingMessage & Record<'method' | 'path' | 'statusCode', unknown>;
  return { type, method, path, statusCode, headers: value.getHeaders() };
}

// By what they have, and not by their class: loading node:http takes longer than half of the library. The requests and answers
// of HTTP/2 have it too.
function isIncoming(stream: Stream): stream is IncomingMessage {
  return Array.isArray((stream as Partial<IncomingMessage>).rawHeaders);
}

function isOutgoing(stream: Stream): stream is OutgoingMessage {
  const { getHeaders, setHeader } = stream as Partial<OutgoingMessage>;
  return typeof getHeaders === 'function' && typeof setHeader === 'function';
}

/** An object of the pairs; a key that comes again has a list of its values. */
function keyed(pairs: Iterator<readonly [string, unknown]>, width: number): Readonly<Record<string, unknown>> {
  const lists = new Map<string, unknown[]>();
  for (let taken = 0; taken < width; taken++) {
    const { done, value } = pairs.next();
    if (done === true) break;
    const list = lists.get(value[0]);
    if (list === undefined) lists.set(value[0], [value[1]]);
    else list.push(value[1]);
  }
  const object: Record<string, unknown> = Object.create(null);
  for (const [key, list] of lists) object[key] = list.length === 1 ? list[0] : list;
  if (pairs.next().done !== true) object['[Truncated]'] = 'more keys';
  return object;
}
