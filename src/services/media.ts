import { parseDataUri } from '../payload/attachment.ts';
import { fieldsOf, isFields, mapped, textOf } from '../payload/fields.ts';
import { base64Bytes, declaredType } from './media-type.ts';

/** Returns a text that replaces base64 text or bytes, for example `[Image: 70 bytes]` or `[Image: image/png, 70 bytes]`. */
export function mediaMarker(kind: 'Image' | 'Audio', data: string | { byteLength: number }, mediaType = ''): string {
  const bytes = typeof data === 'string' ? base64Bytes(data.slice(data.indexOf(',') + 1)) : data.byteLength;
  return `[${kind}: ${mediaType && `${mediaType}, `}${bytes} bytes]`;
}

/**
 * Converts base64 text to a data URI, which is recorded as an attachment. Returns undefined if the value is no text,
 * a data URI already, or small enough to stay in the payload.
 */
export function dataUriOf(mimeType: unknown, base64: unknown): string | undefined {
  if (textOf(base64)?.startsWith('data:') !== false) return undefined;
  const uri = `data:${textOf(mimeType)};base64,${base64}`;
  return parseDataUri(uri) === undefined ? undefined : uri;
}

/**
 * Converts base64 images, documents and audio in messages to data URIs. If there is nothing to convert, returns the
 * same list.
 */
export function withDataUris(messages: unknown): unknown {
  return mapped(messages, withContent);
}

/** Converts the base64 in a content block to a data URI. Supports OpenAI, Anthropic and LangChain blocks. */
export function blockWithDataUri(block: unknown): unknown {
  const { type, input_audio, source, data, mime_type, mimeType } = fieldsOf(block);
  if (type === 'tool_result') return withContent(block);
  if (type === 'input_audio')
    return withField(block, 'input_audio', withUri(input_audio, declaredType('audio', fieldsOf(input_audio))));
  if (!isFields(source)) return data === undefined ? block : withUri(block, mime_type ?? mimeType);
  // The source of a document may be a list of blocks.
  if (source.type === 'content') return withField(block, 'source', withContent(source));
  return source.type === 'base64' ? withField(block, 'source', withUri(source, source.media_type)) : block;
}

function withContent(owner: unknown): unknown {
  return withField(owner, 'content', mapped(fieldsOf(owner).content, blockWithDataUri));
}

function withUri(owner: unknown, mimeType: unknown): unknown {
  return withField(owner, 'data', dataUriOf(mimeType, fieldsOf(owner).data) ?? fieldsOf(owner).data);
}

/** Returns a copy of an object with one field changed. If the value is the same, returns the object. */
export function withField(owner: unknown, key: string, value: unknown): unknown {
  return fieldsOf(owner)[key] === value ? owner : { ...fieldsOf(owner), [key]: value };
}
