import { isObject } from '../../base/options.ts';
import { cut } from '../../base/text.ts';

const LENGTH_MAX = 200;
/** How deep a payload is looked into for its text, and how many items of a list, from its end. */
const LEVELS_MAX = 8;
const ITEMS_MAX = 20;

/** Where the text of a payload stands, as chat models, chains and functions name it; the first that has text says it. */
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
 * What a payload says, on one line of 200 characters at the most: of messages the text of the last, of an object whose
 * text has one of the usual names or stands alone that text, else the beginning of its JSON. Undefined for what is empty.
 */
export function previewOf(payload: unknown): string | undefined {
  if (payload === undefined || (isObject(payload) && Object.keys(payload).length === 0)) return undefined;
  const text = textIn(payload, LEVELS_MAX) ?? jsonBeginning(payload);
  // As a rule the beginning is enough; of text that is mostly empty lines it takes more.
  const beginning = lineOf(text.slice(0, 2 * LENGTH_MAX));
  const line = beginning.length > LENGTH_MAX ? beginning : lineOf(text.slice(0, 8 * LENGTH_MAX));
  return line === '' ? undefined : cut(line, LENGTH_MAX);
}

/** Single spaces, which most are, stay where they are. */
function lineOf(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, ' ').trim();
}

function textIn(value: unknown, levels: number): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (typeof value !== 'object' || value === null || levels === 0) return undefined;
  if (Array.isArray(value)) {
    for (const item of value.slice(-ITEMS_MAX).reverse()) {
      const text = textIn(item, levels - 1);
      if (text !== undefined) return text;
    }
    return undefined;
  }
  const fields = value as Record<string, unknown>;
  for (const key of TEXT_KEYS) {
    const text = Object.hasOwn(fields, key) ? textIn(fields[key], levels - 1) : undefined;
    if (text !== undefined) return text;
  }
  const [only, another] = Object.values(fields);
  return another === undefined ? textIn(only, levels - 1) : undefined;
}

/** The first characters of the value as JSON; a payload of megabytes costs no more. */
function jsonBeginning(payload: unknown): string {
  let json = '';
  const write = (value: unknown): void => {
    if (json.length > LENGTH_MAX) return;
    if (Array.isArray(value)) {
      json += '[';
      writeAll(value, (item) => write(item));
      json += ']';
    } else if (isObject(value)) {
      json += '{';
      writeAll(Object.keys(value), (key) => {
        json += `${JSON.stringify(key)}:`;
        write(value[key]);
      });
      json += '}';
    } else {
      json += JSON.stringify(typeof value === 'string' ? value.slice(0, 2 * LENGTH_MAX) : value);
    }
  };
  const writeAll = <Item>(items: readonly Item[], writeItem: (item: Item) => void): void => {
    for (const [at, item] of items.entries()) {
      if (json.length > LENGTH_MAX) return;
      if (at > 0) json += ',';
      writeItem(item);
    }
  };
  write(payload);
  return json;
}
