import type { Limits } from '../base/limits.ts';
import { messageOf } from '../base/text.ts';
import { mayBeDataUri } from './data-uri.ts';
import { jsonTree } from './json-tree.ts';
import type { PayloadAttachments } from './payload-attachments.ts';

/** Bounds of one payload (one of `inputs`, `outputs`, one event); what lies beyond is cut, and a marker says so. */
export interface PayloadLimits {
  /** Levels of nesting. */
  readonly depth: number;
  /** Items of one array, keys of one object. */
  readonly width: number;
  /** Values in all. */
  readonly nodes: number;
  /** Characters of text in all. */
  readonly bytes: number;
}

/** The limits of payloads, out of all there are. */
export function payloadLimits(limits: Limits): PayloadLimits {
  const { payloadDepth: depth, payloadWidth: width, payloadNodes: nodes, payloadBytes: bytes } = limits;
  return { depth, width, nodes, bytes };
}

/**
 * The JSON text of any value, as it is at this moment. Never throws: what JSON cannot hold is told in its place
 * (`json-tree.ts` says how), and the rest of the payload is kept.
 *
 * Plain JSON within the limits, which is nearly every payload, is left to `JSON.stringify` after one look over it. Where
 * `JSON.parse` has just made the value of `text`, that stands for it unless something has to be cut or taken out of it.
 * `attachments` takes binary data; without it the first kilobyte is kept in its place.
 */
export function serialize(
  value: unknown,
  limits: PayloadLimits,
  text?: string,
  attachments?: PayloadAttachments,
): string {
  try {
    const budget = { nodes: limits.nodes, bytes: limits.bytes, attaches: attachments !== undefined };
    if (isPlain(value, limits.depth, limits, budget)) return text ?? JSON.stringify(value) ?? 'null';
  } catch {
    // Reading the value ran code of the application that threw; the tree is built with each read guarded.
  }
  try {
    return JSON.stringify(jsonTree(value, limits, attachments)) ?? 'null';
  } catch (thrown) {
    // Limits can be set beyond what the stack or a string holds.
    return JSON.stringify(`[Threw: ${messageOf(thrown)}]`);
  }
}

interface Budget {
  nodes: number;
  bytes: number;
  readonly attaches: boolean;
}

/** Whether JSON.stringify would give the value as it is: plain objects, arrays and primitives within the limits. */
function isPlain(value: unknown, depth: number, limits: PayloadLimits, left: Budget): boolean {
  if (--left.nodes < 0) return false;
  switch (typeof value) {
    case 'string':
      left.bytes -= value.length;
      return left.bytes >= 0 && !(left.attaches && mayBeDataUri(value));
    case 'number':
      return Number.isFinite(value);
    case 'boolean':
    case 'undefined':
      return true;
    case 'object':
      if (value === null) return true;
      if (depth === 0 || typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
      return Array.isArray(value)
        ? isPlainArray(value, depth - 1, limits, left)
        : isPlainObject(value as Record<string, unknown>, depth - 1, limits, left);
    default:
      return false;
  }
}

function isPlainArray(items: readonly unknown[], depth: number, limits: PayloadLimits, left: Budget): boolean {
  if (items.length > limits.width) return false;
  for (let at = 0; at < items.length; at++) {
    if (!isPlain(items[at], depth, limits, left)) return false;
  }
  return true;
}

function isPlainObject(object: Record<string, unknown>, depth: number, limits: PayloadLimits, left: Budget): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) return false;
  let keys = 0;
  for (const key in object) {
    left.bytes -= key.length;
    if (left.bytes < 0 || ++keys > limits.width || !isPlain(object[key], depth, limits, left)) return false;
  }
  return true;
}
