import { type Fields, fieldsOf, mapped } from '../fields.ts';
import { dataUriOf } from '../media.ts';

/**
 * Returns messages with images and documents as data URIs instead of base64. Returns the same list if nothing changes.
 */
export function withDataUris(messages: unknown): unknown {
  return mapped(messages, withContent);
}

export function blockWithDataUris(block: unknown): unknown {
  const { type, source } = fieldsOf(block);
  if (type === 'tool_result') return withContent(block);
  const converted = sourceOf(source);
  return converted === source ? block : { ...fieldsOf(block), source: converted };
}

/** The source of a document may be a list of blocks. */
function sourceOf(source: unknown): unknown {
  const { type, media_type, data } = fieldsOf(source);
  if (type === 'content') return withContent(source);
  const uri = type === 'base64' ? dataUriOf(media_type, data) : undefined;
  return uri === undefined ? source : { ...fieldsOf(source), data: uri };
}

function withContent(owner: unknown): unknown {
  const fields: Fields = fieldsOf(owner);
  const content = mapped(fields.content, blockWithDataUris);
  return content === fields.content ? owner : { ...fields, content };
}
