import { diagnostics } from '../../base/diagnostics.ts';
import { ignoreErrors } from '../../base/guard.ts';
import { cut, messageOf, visible } from '../../base/text.ts';
import type { HttpResponse } from '../../http/transport.ts';
import { type Fields, fieldsOf, listOf, parsedJson } from '../../payload/fields.ts';
import { secretPatterns } from '../../payload/redaction/patterns.ts';

const CHARACTERS_MAX = 200;

/** Maximum nesting of a message, as in `{"detail":[{"msg":"…"}]}`. */
const DEPTH_MAX = 3;

export function jsonIn({ text }: HttpResponse): Fields {
  return fieldsOf(parsedJson(text));
}

/** Returns a status and what the service says about it, for example `status 422, "name is missing"`. */
export function statusText(response: HttpResponse, fields: Fields = jsonIn(response)): string {
  const reason = response.status < 300 ? undefined : reasonIn(fields, response);
  return `status ${response.status}${reason === undefined ? '' : `, "${reason}"`}`;
}

/**
 * Returns what a service says about a request: the message in the fields of its response, otherwise a plain text. The
 * result has one line with at most 200 characters, without keys. Never throws.
 */
export function reasonIn(fields: Fields, { headers, text }: HttpResponse): string | undefined {
  const isText = /^text\/plain\b/i.test(String(headers['content-type']));
  const words = ignoreErrors(() => wordsIn(fields)) ?? (isText && !text.startsWith('{') ? text : '');
  const line = messageOf(withoutSecrets(words) ?? '').trim();
  return line === '' ? undefined : visible(cut(line, CHARACTERS_MAX).toWellFormed());
}

/**
 * Masks the keys of this process, and texts that look like secrets. Undefined if the text still contains a part of a key.
 * The text must be whole, because a part of a key matches no pattern.
 */
export function withoutSecrets(text: string): string | undefined {
  let safe = text;
  for (const pattern of secretPatterns) safe = safe.replace(new RegExp(pattern, `${pattern.flags}g`), '[Redacted]');
  return diagnostics.redacted(safe);
}

/** Reads the fields that services use. A list of validation errors gives its first error, with the place. */
function wordsIn(value: unknown, depth = 0): string | undefined {
  if (typeof value === 'string') return value.trim() || undefined;
  if (depth > DEPTH_MAX) return undefined;
  if (Array.isArray(value)) return wordsIn(value[0], depth + 1);
  const { detail, message, error, errors, msg, title, loc, partialSuccess } = fieldsOf(value);
  const { errorMessage } = fieldsOf(partialSuccess);
  for (const inner of [detail, message, error, errors, msg, errorMessage, title]) {
    const words = wordsIn(inner, depth + 1);
    const place = listOf(loc).filter((step) => typeof step === 'string' || typeof step === 'number');
    if (words !== undefined) return place.length === 0 ? words : `${place.join('.')}: ${words}`;
  }
  return undefined;
}
