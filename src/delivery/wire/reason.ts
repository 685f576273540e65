import { diagnostics } from '../../base/diagnostics.ts';
import { cut, messageOf, visible } from '../../base/text.ts';
import type { HttpResponse } from '../../http/transport.ts';
import { type Fields, fieldsOf, listOf, parsedJson } from '../../payload/fields.ts';
import { secretPatterns } from '../../payload/redaction/patterns.ts';

const CHARACTERS_MAX = 200;

/** Number of characters of a message that are searched for keys. */
const SEARCHED_MAX = 4_096;

/** Maximum nesting of a message, as in `{"detail":[{"msg":"…"}]}`. */
const DEPTH_MAX = 3;

export function jsonIn({ text }: HttpResponse): Fields {
  return fieldsOf(parsedJson(text));
}

/**
 * Returns what a service says about a request: the message in the fields of its response, otherwise a plain text. The
 * result has one line with at most 200 characters, without keys.
 */
export function reasonIn(fields: Fields, { headers, text }: HttpResponse): string | undefined {
  const isText = String(headers['content-type']).startsWith('text/plain');
  const words = wordsIn(fields) ?? (isText && !text.startsWith('{') ? text : '');
  const line = messageOf(withoutKeys(words.slice(0, SEARCHED_MAX))).trim();
  return line === '' ? undefined : visible(cut(line, CHARACTERS_MAX));
}

/** Masks the keys of this process, and texts that look like keys. */
export function withoutKeys(text: string): string {
  let safe = diagnostics.redacted(text);
  for (const pattern of secretPatterns) safe = safe.replace(new RegExp(pattern, `${pattern.flags}g`), '[Redacted]');
  return safe;
}

/** Reads the fields that services use. A list of validation errors gives its first error, with the place. */
function wordsIn(value: unknown, depth = 0): string | undefined {
  if (typeof value === 'string') return value.trim() || undefined;
  if (depth > DEPTH_MAX) return undefined;
  if (Array.isArray(value)) return wordsIn(value[0], depth + 1);
  const { detail, message, error, msg, loc, partialSuccess } = fieldsOf(value);
  const { errorMessage } = fieldsOf(partialSuccess);
  for (const inner of [detail, message, error, msg, errorMessage]) {
    const words = wordsIn(inner, depth + 1);
    if (words !== undefined) return loc === undefined ? words : `${listOf(loc).join('.')}: ${words}`;
  }
  return undefined;
}
