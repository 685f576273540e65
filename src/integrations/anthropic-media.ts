import { type Fields, fieldsOf, mapped } from './fields.ts';
import { dataUriOf } from './media.ts';

/**
 * Messages whose images and documents are data URIs, which leave their payload for attachments, in the place of bare
 * base64. What has none of it is handed on as it is.
 */
export function withDataUris(messages: unknown): unknown {
  return mapped(messages, withContent);
}

/** The same for one block of a message. */
export function blockWithDataUris(block: unknown): unknown {
  const { type, source } = fieldsOf(block);
  if (type === 'tool_result') return withContent(block);
  const read = sourceOf(source);
  return read === source ? block : { ...fieldsOf(block), source: read };
}

/** A document may have blocks of its own as its source. */
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
