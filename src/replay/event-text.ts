import { exactJson, type Fields } from '../payload/fields.ts';

/** Returns a server-sent event without a name. */
export function jsonEvent(value: unknown): string {
  return `data: ${exactJson(value)}\n\n`;
}

/** Returns a server-sent event that is named after its type. */
export function namedEvent(event: Fields): string {
  return `event: ${event.type}\n${jsonEvent(event)}`;
}

/** Splits a text into words with the white space after or before them. */
export function wordsOf(text: string, space: 'space after' | 'space before' = 'space after'): string[] {
  return text.match(space === 'space after' ? /^\s+|\S+\s*/g : /\s*\S+|\s+/g) ?? [];
}

/** Returns the first items of all lists, then the second items, and so on. */
export function interleaved<Item>(lists: readonly (readonly Item[])[]): Item[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}
