import { mayBeDataUri } from './data-uri.ts';
import { plainKeys } from './key-forms.ts';
import type { PayloadRules } from './payload-rules.ts';

/** What may still come, while a value is looked over. */
interface Left {
  nodes: number;
  characters: number;
  /** Whether a data URI leaves the text. */
  readonly attaches: boolean;
}

/**
 * Whether the text that `JSON.parse` has just made the value of can stand for it: within the limits, and with nothing in it
 * that is to be hidden. There is no code of the application in such a value.
 */
export function isKeptWhole(value: unknown, rules: PayloadRules, attaches: boolean): boolean {
  if (rules.redaction?.root !== undefined || rules.redaction?.hidesAll === true) return false;
  return isKept(value, rules.depth, rules, { nodes: rules.nodes, characters: rules.bytes, attaches });
}

function isKept(value: unknown, depth: number, rules: PayloadRules, left: Left): boolean {
  if (--left.nodes < 0) return false;
  if (typeof value === 'string') {
    left.characters -= value.length;
    if (left.characters < 0 || (left.attaches && mayBeDataUri(value))) return false;
    return value.isWellFormed() && rules.redaction?.finds(value) !== true;
  }
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  if (Array.isArray(value)) {
    return value.length <= rules.width && value.every((item) => isKept(item, depth - 1, rules, left));
  }
  const forms = rules.redaction?.keys ?? plainKeys;
  let count = 0;
  for (const key of Object.keys(value)) {
    left.characters -= key.length;
    if (forms.of(key).isSpecial || left.characters < 0 || ++count > rules.width) return false;
    if (!isKept((value as Record<string, unknown>)[key], depth - 1, rules, left)) return false;
  }
  return true;
}
