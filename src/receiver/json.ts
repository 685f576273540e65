import { messageOf } from '../base/text.ts';
import { Refusal } from './refusal.ts';

/**
 * How deep JSON may nest. Serializing and copying recurse, and would run out of stack on a body of brackets; our own
 * exporter cuts payloads at 64 levels.
 */
const DEPTH_MAX = 512;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The value of JSON text in UTF-8, or 400 with a sentence that begins with `what`. */
export function parseJson(bytes: Uint8Array, what: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch (error) {
    throw new Refusal(400, `${what} is no JSON: ${messageOf(error)}`);
  }
  if (isDeeperThan(value, DEPTH_MAX)) throw new Refusal(400, `${what} nests deeper than ${DEPTH_MAX} levels`);
  return value;
}

/** Whether a value of JSON is an object in JSON's sense. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const item of Object.values(value)) {
    if (isDeeperThan(item, levels - 1)) return true;
  }
  return false;
}
