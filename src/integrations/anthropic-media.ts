import { parseDataUri } from '../run/data-uri.ts';
import { type Fields, fieldsOf, textOf } from './fields.ts';

/**
 * Messages whose images and documents are data URIs, which leave their payload for attachments, in the place of bare
 * base64. What has none of it is handed on as it is.
 */
export function withDataUris(messages: unknown): unknown {
  return mapped(messages, withContent);
}

function blockOf(block: unknown): unknown {
  const { type, source } = fieldsOf(block);
  if (type === 'tool_result') return withContent(block);
  const read = sourceOf(source);
  return read === source ? block : { ...fieldsOf(block), source: read };
}

/** A document may have blocks of its own as its source. */
function sourceOf(source: unknown): unknown {
  const { type, media_type, data } = fieldsOf(source);
  if (type === 'content') return withContent(source);
  if (type !== 'base64' || textOf(data) === undefined) return source;
  const uri = `data:${media_type};base64,${data}`;
  return parseDataUri(uri) === undefined ? source : { ...fieldsOf(source), data: uri };
}

function withContent(owner: unknown): unknown {
  const fields: Fields = fieldsOf(owner);
  const content = mapped(fields.content, blockOf);
  return content === fields.content ? owner : { ...fields, content };
}

/** The same list where nothing in it is another. */
function mapped(list: unknown, map: (item: unknown) => unknown): unknown {
  if (!Array.isArray(list)) return list;
  const items = list.map(map);
  return items.some((item, at) => item !== list[at]) ? items : list;
}
