/**
 * Encodes a name as a segment of a URL path. The names `.` and `..` get a comma, because clients and proxies remove the
 * segments `.`, `..` and `%2E%2E`. Another name contains no comma after the encoding.
 */
export function pathSegment(name: string): string {
  return encodeURIComponent(name).replace(/^\.{1,2}$/, '$&,');
}

/** Decodes a segment of a URL path. Throws a URIError if it contains an invalid escape sequence. */
export function nameInPath(segment: string): string {
  return decodeURIComponent(segment.replace(/^(\.{1,2}),$/, '$1'));
}
