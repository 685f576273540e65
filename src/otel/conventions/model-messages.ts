/** Messages and documents in the format of model APIs, shared by several vocabularies. */
import { defined, type Fields, isObject, json, text } from './values.ts';

export function isMessageList(value: unknown): value is Fields[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => isObject(item) && 'role' in item);
}

/** Returns the content of a message: the text if there is only one block and it is text, else the list of blocks. */
export function contentOfBlocks(blocks: readonly Fields[]): unknown {
  if (blocks.length === 0) return undefined;
  const [first] = blocks;
  return blocks.length === 1 && first?.type === 'text' ? first.text : blocks;
}

/** Returns a tool call in the format of model APIs, in which the arguments are JSON text. */
export function toolCall(id: unknown, name: unknown, args: unknown, rest: Fields = {}): Fields {
  return defined({ id, type: 'function', function: defined({ name, arguments: asText(args) }), ...rest });
}

/** Returns a retrieved document. Metadata that is not an object is recorded under the key `metadata`. */
export function foundDocument(content: unknown, metadata: unknown, rest: Fields): Fields {
  const known = json(metadata);
  const about = isObject(known) ? known : { metadata: known };
  return {
    page_content: asText(content ?? undefined) ?? '',
    type: 'Document',
    metadata: defined({ ...about, ...rest }),
  };
}

/** Returns a data URI for base64 text, and a URL unchanged. A long data URI becomes an attachment. */
export function urlOfBase64(base64: string, mediaType: unknown): string {
  if (/^(?:https?|data):/.test(base64)) return base64;
  return `data:${text(mediaType) ?? 'application/octet-stream'};base64,${base64}`;
}

function asText(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
}
