/** `type/subtype` with parameters, in characters that a header line may hold (RFC 9110, 8.3.1). */
const MIME_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(;[\t\x20-\x7e]*)?$/;

/** Whether these make an attachment: a part name has its dots elsewhere, and the type becomes a header line. */
export function isAttachment(name: unknown, bytes: unknown, mimeType: unknown): boolean {
  const isNamed = typeof name === 'string' && name !== '' && !name.includes('.');
  return isNamed && bytes instanceof Uint8Array && typeof mimeType === 'string' && MIME_TYPE.test(mimeType);
}
