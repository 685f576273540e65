/** Converts messages to the format of model APIs. Used by the integrations and the span mapping. */
import { UNKNOWN_TYPE } from '../payload/attachment.ts';
import { defined, exactJson, type Fields, fieldsOf, filled, textOf } from '../payload/fields.ts';

/** Returns a message's content: the text if the only block is a text block, otherwise the list of blocks. */
export function contentOfBlocks(blocks: readonly unknown[]): unknown {
  if (blocks.length === 0) return undefined;
  const { type, text } = fieldsOf(blocks[0]);
  return blocks.length === 1 && type === 'text' ? text : blocks;
}

/** A part of a message: a tool call, the result of one, which is a message of its own, or a block of the content. */
export type MessagePart = { readonly call: Fields } | { readonly result: Fields } | { readonly block: unknown };

/** Returns a message with these parts, followed by the results of tools. Omits a message that only wraps results. */
export function messagesOfParts(fields: Fields, parts: readonly MessagePart[]): Fields[] {
  const calls = parts.flatMap((part) => ('call' in part ? [part.call] : []));
  const results = parts.flatMap((part) => ('result' in part ? [part.result] : []));
  const content = contentOfBlocks(parts.flatMap((part) => ('block' in part ? [part.block] : [])));
  if (content === undefined && calls.length === 0 && results.length > 0) return results;
  return [defined({ ...fields, content, tool_calls: filled(calls) }), ...results];
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
    return exactJson(value);
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
