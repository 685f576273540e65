/**
 * Replaces the segments of a URL path that are ids by `:id`, so that the names of runs stay few: a number, a UUID, a ULID,
 * 16 or more hexadecimal digits, or a token such as `V1StGXR8_Z5jdHi6B-myT`.
 */
export function pathPattern(path: string): string {
  return path
    .split('/')
    .map((segment) => (isId(segment) ? ':id' : segment))
    .join('/');
}

const UUID = /^[\da-f]{8}-?(?:[\da-f]{4}-?){3}[\da-f]{12}$/i;
const ULID = /^[0-7][\da-hjkmnp-tv-z]{25}$/i;
const LONG_HEX = /^(?=.*\d)[\da-f]{16,}$/i;
const TOKEN = /^(?=.*\d)[\w-]{16,}$/;
/** A place where the kind of character changes: lowercase, uppercase or digit. The capital of a word is no change. */
const CHANGE = /(?<=[a-z])[A-Z\d]|(?<=[A-Z])\d|(?<=\d)[A-Za-z]/g;
/** Number of characters per change. Generated ids have fewer. Words have more, also with versions: `gpt-4o-2024-08-06`. */
const CHARACTERS_PER_CHANGE = 4;

function isId(segment: string): boolean {
  if (/^\d+$/.test(segment) || UUID.test(segment) || ULID.test(segment) || LONG_HEX.test(segment)) return true;
  if (!TOKEN.test(segment)) return false;
  return (segment.match(CHANGE)?.length ?? 0) * CHARACTERS_PER_CHANGE >= segment.length;
}
