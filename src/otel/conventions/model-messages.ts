/** What vocabularies have in common of messages and documents, in the shape that models take. */
import { defined, type Fields, isObject, json, text } from './values.ts';

/** Whether a value is a list of messages in whatever shape. */
export function isMessageList(value: unknown): value is Fields[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => isObject(item) && 'role' in item);
}

/** One piece of text stands for itself. */
export function contentOfBlocks(blocks: readonly Fields[]): unknown {
  if (blocks.length === 0) return undefined;
  const [first] = blocks;
  return blocks.length === 1 && first?.type === 'text' ? first.text : blocks;
}

/** A call of a tool. Models give the arguments as text. */
export function toolCall(id: unknown, name: unknown, args: unknown, rest: Fields = {}): Fields {
  return defined({ id, type: 'function', function: defined({ name, arguments: asText(args) }), ...rest });
}

/** Something found. Metadata that are no object have a key of their own. */
export function foundDocument(content: unknown, metadata: unknown, rest: Fields): Fields {
  const known = json(metadata);
  const about = isObject(known) ? known : { metadata: known };
  return {
    page_content: asText(content ?? undefined) ?? '',
    type: 'Document',
    metadata: defined({ ...about, ...rest }),
  };
}

/** Bytes in base64 as a data URI, which leaves the payload when it is long. A URL stays as it is. */
export function urlOfBase64(base64: string, mediaType: unknown): string {
  if (/^(?:https?|data):/.test(base64)) return base64;
  return `data:${text(mediaType) ?? 'application/octet-stream'};base64,${base64}`;
}

function asText(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
}
