/** Messages in the format of model APIs, shared by the integrations and the mapping of spans. */
import { UNKNOWN_TYPE } from './attachment.ts';
import { defined, type Fields, fieldsOf, textOf } from './fields.ts';

/** Returns the content of a message: the text if there is only one block and it is text, else the list of blocks. */
export function contentOfBlocks(blocks: readonly unknown[]): unknown {
  if (blocks.length === 0) return undefined;
  const { type, text } = fieldsOf(blocks[0]);
  return blocks.length === 1 && type === 'text' ? text : blocks;
}

/** Returns a tool call in the format of model APIs, in which the arguments are JSON text. */
export function toolCall(id: unknown, name: unknown, args: unknown, rest: Fields = {}): Fields {
  return defined({ id, type: 'function', function: defined({ name, arguments: asText(args) }), ...rest });
}

/**
 * Returns a value as JSON text. A value that JSON cannot represent is returned unchanged, because the payload serializer
 * handles such values.
 */
export function asText(value: unknown): unknown {
  if (value === undefined || typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch {
    return value;
  }
}

/** Returns a data URI for base64 text, and other text unchanged. A long data URI becomes an attachment. */
export function urlOfBase64(text: string, mediaType: unknown): string {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return text;
  return `data:${textOf(mediaType) || UNKNOWN_TYPE};base64,${text}`;
}
