/**
 * Returns a text as it is compared, grouped and listed. NUL and unpaired surrogates become U+FFFD, because databases cut
 * or replace them.
 */
export function comparable(text: string): string {
  return text.replaceAll('\0', '\ufffd').replace(/\p{Surrogate}/gu, '\ufffd');
}
