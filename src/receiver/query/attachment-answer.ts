import type { Attachment } from '../../run/record.ts';
import type { RouteResponse } from '../route.ts';

/** Types that a browser shows or plays and runs nothing of. All others are saved, as bytes that it knows nothing of. */
const SHOWN = /^(?:image\/(?:png|jpeg|gif|webp|avif)|(?:audio|video)\/[a-z0-9][a-z0-9.+-]*)$/;

/**
 * The bytes of an attachment, as anybody may have sent them: nothing in them runs, nor is it read as another type than the one
 * told, nor does a name say where it is saved.
 */
export function attachmentAnswer({ name, mimeType, bytes }: Attachment): RouteResponse {
  const type = mimeType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const isShown = SHOWN.test(type);
  return {
    status: 200,
    content: bytes,
    headers: {
      'content-type': isShown ? type : 'application/octet-stream',
      'content-disposition': `${isShown ? 'inline' : 'attachment'}; ${fileName(name)}`,
      'content-security-policy': "sandbox; default-src 'none'",
    },
  };
}

/** Both spellings (RFC 6266, 4.3): of the first everything is left out that could be read as more than a name. */
function fileName(name: string): string {
  const plain = name.replaceAll(/[^\w.-]/g, '_').replace(/^\.+/, '_');
  return `filename="${plain}"; filename*=UTF-8''${encoded(name)}`;
}

/** RFC 8187, 3.2: `encodeURIComponent` leaves `'()*` as they are, and throws at half a pair. */
function encoded(name: string): string {
  const code = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(name.toWellFormed()).replaceAll(/['()*]/g, code);
}
