import { types } from 'node:util';
import { ignoreRejection } from '../base/rejection.ts';
import { messageOf } from '../base/text.ts';
import { isBlob, sizeOf, viewOf } from './attachment.ts';
import type { PayloadAttachments } from './payload-attachments.ts';
import type { PayloadLimits } from './serialize.ts';

/** Bytes of a binary value that are kept in its place, as base64; a larger one is attached where there are attachments. */
const BINARY_BYTES_MAX = 1_024;

/** A key of up to this many characters is kept even when there is no room for text: it says what the payload was made of. */
const KEY_CHARACTERS_KEPT = 256;

/** Of a string that is cut, this share is kept from its head and the rest from its tail. */
const HEAD_SHARE = 0.75;

interface Walk {
  readonly limits: PayloadLimits;
  readonly attachments: PayloadAttachments | undefined;
  /** The objects between the root and the value at hand: only a true ancestor makes a cycle. */
  readonly ancestors: unknown[];
  nodes: number;
  bytes: number;
}

/**
 * A copy of any value that `JSON.stringify` takes without throwing or losing anything silently:
 *
 * - cycles `[Circular]`, functions `[Function name]`, promises `[Promise]`, symbols by their description;
 * - BigInt `123n`; NaN and the infinities by name; dates in ISO 8601; URLs without user and password;
 * - Map an object when all keys are strings, else a list of pairs; Set a list;
 * - Error an object of name, message, stack, cause and its own properties;
 * - binary `{ type, byteLength, base64 }` with at most 1 KiB of it; with `attachments`, a larger one and a Blob
 *   `{ type, byteLength, attachment }`, and a long data URI `[Attachment name: type, bytes]`;
 * - a getter or `toJSON` that throws `[Threw: message]`, with the rest of its object kept;
 * - beyond the limits a marker that says how much was cut.
 */
export function jsonTree(value: unknown, limits: PayloadLimits, attachments?: PayloadAttachments): unknown {
  const walk: Walk = { limits, attachments, ancestors: [], nodes: limits.nodes, bytes: limits.bytes };
  return guarded(() => visit(value, walk));
}

function visit(value: unknown, walk: Walk): unknown {
  if (--walk.nodes < 0) return '[Truncated: too many values]';
  switch (typeof value) {
    case 'string':
      return cut(walk.attachments?.attachText(value) ?? value, walk);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return cut(`${value}n`, walk);
    case 'symbol':
      return cut(value.toString(), walk);
    case 'function':
      return cut(`[Function ${value.name || 'anonymous'}]`, walk);
    case 'object':
      return value === null ? null : visitObject(value, walk);
    default:
      return value;
  }
}

function visitObject(value: object, walk: Walk): unknown {
  if (walk.ancestors.includes(value)) return '[Circular]';
  if (walk.ancestors.length >= walk.limits.depth) return '[Truncated: too deep]';
  walk.ancestors.push(value);
  try {
    return visitByKind(value, walk);
  } finally {
    walk.ancestors.pop();
  }
}

function visitByKind(value: object, walk: Walk): unknown {
  if (types.isDate(value)) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (types.isPromise(value)) return '[Promise]';
  if (types.isRegExp(value)) return cut(String(value), walk);
  if (types.isBoxedPrimitive(value)) return visit(value.valueOf(), walk);
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) return binary(value, walk);
  if (types.isMap(value)) return visitMap(value, walk);
  if (types.isSet(value)) return visitItems([...value], walk);
  if (types.isNativeError(value) || value instanceof Error) return visitError(value, walk);
  if (value instanceof URL) return cut(withoutCredentials(value), walk);
  if (typeof ReadableStream === 'function' && value instanceof ReadableStream) return '[ReadableStream]';
  if (isBlob(value)) return binary(value, walk);
  const toJson: unknown = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJson !== 'function') return visitPlain(value, walk);
  const result: unknown = toJson.call(value, '');
  // One that returns its own object would be asked again without end; what the object holds stands for it.
  if (result === value) return visitPlain(value, walk, 'toJSON');
  // An asynchronous one was called on our account alone; its rejection would otherwise end the process.
  ignoreRejection(result);
  return visit(result, walk);
}

function visitPlain(value: object, walk: Walk, leftOut?: string): unknown {
  if (Array.isArray(value)) return visitItems(value, walk);
  const keys = Object.keys(value);
  return visitKeys(value, leftOut === undefined ? keys : keys.filter((key) => key !== leftOut), walk);
}

function visitItems(items: readonly unknown[], walk: Walk): unknown[] {
  const kept = Math.min(items.length, walk.limits.width);
  const out: unknown[] = [];
  for (let at = 0; at < kept && walk.nodes > 0; at++) out.push(guarded(() => visit(items[at], walk) ?? null));
  if (out.length < items.length) out.push(`[Truncated: ${items.length - out.length} more items]`);
  return out;
}

function visitKeys(object: object, keys: readonly string[], walk: Walk): Record<string, unknown> {
  // Without a prototype, so that a key named __proto__ is data like any other.
  const out: Record<string, unknown> = Object.create(null);
  let taken = 0;
  for (const key of keys) {
    if (taken >= walk.limits.width || walk.nodes <= 0) break;
    if (key.length > Math.max(walk.bytes, KEY_CHARACTERS_KEPT)) break;
    taken++;
    walk.bytes -= key.length;
    out[key] = guarded(() => visit((object as Record<string, unknown>)[key], walk));
  }
  if (taken < keys.length) out['[Truncated]'] = `${keys.length - taken} more keys`;
  return out;
}

function visitMap(map: ReadonlyMap<unknown, unknown>, walk: Walk): unknown {
  const keys = [...map.keys()];
  if (!keys.every((key) => typeof key === 'string')) return visitItems([...map], walk);
  const entries: Record<string, unknown> = Object.create(null);
  for (const [key, item] of map) entries[key as string] = item;
  return visitKeys(entries, keys, walk);
}

function visitError(error: Error, walk: Walk): Record<string, unknown> {
  const own = Object.keys(error).filter((key) => key !== 'name' && key !== 'message' && key !== 'stack');
  const named = ['name', 'message', 'stack', ...['cause', 'errors'].filter((key) => key in error)];
  return visitKeys(error, [...new Set([...named, ...own])], walk);
}

function binary(value: ArrayBufferView | ArrayBufferLike | Blob, walk: Walk): Record<string, unknown> {
  const type = value.constructor.name;
  const byteLength = isBlob(value) ? sizeOf(value) : value.byteLength;
  if (walk.attachments !== undefined && (isBlob(value) || byteLength > BINARY_BYTES_MAX)) {
    return { type, byteLength, attachment: walk.attachments.attach(value) };
  }
  if (isBlob(value)) return { type, byteLength };
  const kept = Math.min(BINARY_BYTES_MAX, Math.floor(Math.max(0, walk.bytes) / 4) * 3);
  const base64 = Buffer.from(viewOf(value).subarray(0, kept)).toString('base64');
  walk.bytes -= base64.length;
  return { type, byteLength, base64 };
}

function withoutCredentials(url: URL): string {
  const copy = new URL(url);
  copy.username = '';
  copy.password = '';
  return copy.href;
}

function cut(text: string, walk: Walk): string {
  walk.bytes -= text.length;
  if (walk.bytes >= 0) return text;
  const kept = Math.max(0, text.length + walk.bytes);
  walk.bytes = 0;
  const first = Math.floor(kept * HEAD_SHARE);
  // Half a surrogate pair is no text; strict services refuse it.
  const head = isWithinPair(text, first) ? first - 1 : first;
  const rest = text.length - (kept - first);
  const tail = isWithinPair(text, rest) ? rest + 1 : rest;
  return `${text.slice(0, head)}[Truncated: ${tail - head} characters]${text.slice(tail)}`;
}

function isWithinPair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(0, at - 1), at + 1));
}

function guarded(read: () => unknown): unknown {
  try {
    return read();
  } catch (thrown) {
    return `[Threw: ${messageOf(thrown)}]`;
  }
}
