import { defined, type Fields, isFields } from '../../payload/fields.ts';
import { asText } from '../../services/chat.ts';
import { json } from './values.ts';

export function isMessageList(value: unknown): value is Fields[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => isFields(item) && 'role' in item);
}

/** Returns a retrieved document. If the metadata is not an object, it is recorded under the key `metadata`. */
export function foundDocument(content: unknown, metadata: unknown, rest: Fields): Fields {
  const known = json(metadata);
  const about = isFields(known) ? known : { metadata: known };
  return {
    page_content: asText(content ?? undefined) ?? '',
    type: 'Document',
    metadata: defined({ ...about, ...rest }),
  };
}
