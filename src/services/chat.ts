/** Converts messages to the format of model APIs. Used by the integrations and the span mapping. */
import { UNKNOWN_TYPE } from '../payload/attachment.ts';
import { defined, type Fields, fieldsOf, textOf } from '../payload/fields.ts';

/** Returns a message's content: the text if the only block is a text block, otherwise the list of blocks. */
export function contentOfBlocks(blocks: readonly unknown[]): unknown {
  if (blocks.length === 0) return undefined;
  const { type, text } = fieldsOf(blocks[0]);
  return blocks.length === 1 && type === 'text' ? text : blocks;
}

/** Returns a tool call in the format of model APIs, with its arguments as a JSON string. */
export function toolCall(id: unknown, name: unknown, args: unknown, rest: Fields = {}): Fields {
  return defined({ id, type: 'function', function: defined({ name, arguments: asText(args) }), ...rest });
}

/**
 * Encodes a value as JSON. Values that JSON cannot represent are returned unchanged, because the payload serializer
 * handles them.
 */
export function asText(value: unknown): unknown {
  if (value === undefined || typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch {
    return value;
  }
}

/**
 * Converts a base64 string to a data URI. Returns other strings unchanged. A long data URI later becomes an attachment.
 */
export function urlOfBase64(text: string, mediaType: unknown): string {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return text;
  return `data:${textOf(mediaType) || UNKNOWN_TYPE};base64,${text}`;
}
