/**
 * Returns a text as it is compared, grouped and listed. NUL and unpaired surrogates become U+FFFD, because databases cut
 * or replace them.
 */
export function comparable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}
