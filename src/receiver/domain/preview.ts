import { cut } from '../../base/text.ts';
import { exactJson, isFields } from '../../payload/fields.ts';

const LENGTH_MAX = 200;
/** Maximum number of nested levels to search for text, and of items at the end of an array. */
const LEVELS_MAX = 8;
const ITEMS_MAX = 20;

/**
 * Names of fields that contain text in the payloads of chat models, chains and functions. Earlier names take
 * precedence.
 */
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
 * Returns a one-line preview of a payload, with at most 200 characters. The preview is the last message of a
 * conversation, the text field of an object, or the beginning of the JSON. Returns undefined if the payload is empty.
 */
export function previewOf(payload: unknown): string | undefined {
  if (payload === undefined || (isFields(payload) && Object.keys(payload).length === 0)) return undefined;
  const text = textIn(payload, LEVELS_MAX) ?? exactJson(payload);
  // The beginning of the text is usually long enough. A longer part is used if the beginning is mostly white space.
  const beginning = lineOf(text.slice(0, 2 * LENGTH_MAX));
  const line = beginning.length > LENGTH_MAX ? beginning : lineOf(text.slice(0, 8 * LENGTH_MAX));
  return line === '' ? undefined : cut(line, LENGTH_MAX);
}

/** Joins the lines of a text. Single spaces are not matched, because replacing them would only cost time. */
function lineOf(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, ' ').trim();
}

function textIn(value: unknown, levels: number): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (levels === 0) return undefined;
  if (Array.isArray(value)) return firstText(value.slice(-ITEMS_MAX).reverse(), levels);
  if (!isFields(value)) return undefined;
  const named = TEXT_KEYS.filter((key) => Object.hasOwn(value, key)).map((key) => value[key]);
  const [only, ...others] = Object.values(value);
  return firstText(named, levels) ?? (others.length === 0 ? textIn(only, levels - 1) : undefined);
}

function firstText(values: readonly unknown[], levels: number): string | undefined {
  for (const value of values) {
    const text = textIn(value, levels - 1);
    if (text !== undefined) return text;
  }
  return undefined;
}
