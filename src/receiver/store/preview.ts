import { isObject } from '../../base/options.ts';
import { cut } from '../../base/text.ts';

const LENGTH_MAX = 200;
/** Maximum number of nested levels, and of the last items of an array, to search for text. */
const LEVELS_MAX = 8;
const ITEMS_MAX = 20;

/** Field names for text in payloads of chat models, chains and functions. Earlier names take precedence. */
const TEXT_KEYS: readonly string[] = [
  'content',
  'text',
  'messages',
  'message',
  'choices',
  'generations',
  'kwargs',
  'parts',
  'input',
  'output',
  'outputs',
  'question',
  'query',
  'prompt',
  'answer',
  'result',
];

/**
 * Returns a preview of a payload on one line of up to 200 characters. It shows the last message of a conversation, the
 * text field of an object, or the beginning of the JSON text. Returns undefined for an empty payload.
 */
export function previewOf(payload: unknown): string | undefined {
  if (payload === undefined || (isObject(payload) && Object.keys(payload).length === 0)) return undefined;
  const text = textIn(payload, LEVELS_MAX) ?? JSON.stringify(payload);
  // The beginning is long enough, unless the text is mostly white space.
  const beginning = lineOf(text.slice(0, 2 * LENGTH_MAX));
  const line = beginning.length > LENGTH_MAX ? beginning : lineOf(text.slice(0, 8 * LENGTH_MAX));
  return line === '' ? undefined : cut(line, LENGTH_MAX);
}

/** Returns the text on one line. Single spaces are not replaced, because they are the most frequent white space. */
function lineOf(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, ' ').trim();
}

function textIn(value: unknown, levels: number): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (typeof value !== 'object' || value === null || levels === 0) return undefined;
  if (Array.isArray(value)) return firstText(value.slice(-ITEMS_MAX).reverse(), levels);
  const fields = value as Record<string, unknown>;
  const named = TEXT_KEYS.filter((key) => Object.hasOwn(fields, key)).map((key) => fields[key]);
  const [only, ...others] = Object.values(fields);
  return firstText(named, levels) ?? (others.length === 0 ? textIn(only, levels - 1) : undefined);
}

function firstText(values: readonly unknown[], levels: number): string | undefined {
  for (const value of values) {
    const text = textIn(value, levels - 1);
    if (text !== undefined) return text;
  }
  return undefined;
}
