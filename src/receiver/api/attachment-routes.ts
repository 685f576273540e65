import type { Attachment } from '../../run/record.ts';
import { HttpError } from '../http/http-error.ts';
import { get, idOf, type Route, type RouteResponse } from '../http/route.ts';

export const attachmentRoutes: readonly Route[] = [
  get('/query/runs/:id/attachments/:name', async (call) => {
    const runId = idOf(call);
    const attachment = await call.store.attachment(call.scope, runId, call.parameters.name ?? '');
    if (attachment === undefined) throw new HttpError(404, `Run ${runId} is not stored, or has no such attachment`);
    return attachmentResponse(attachment);
  }),
];

/**
 * Matches media types that a browser can display without running code. Attachments with any other type are downloaded
 * as `application/octet-stream`.
 */
const SHOWN = /^(?:image\/(?:png|jpeg|gif|webp|avif)|(?:audio|video)\/[a-z0-9][a-z0-9.+-]*)$/;

/** Attachments are untrusted: the browser must not run them, guess their type, or use a folder in their file name. */
function attachmentResponse({ name, mimeType, bytes }: Attachment): RouteResponse {
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

/** Returns `filename`, which has only safe characters, and `filename*` (RFC 6266, 4.3). Neither names a folder. */
function fileName(name: string): string {
  const plain = name.replaceAll(/[^\w.-]/g, '_').replace(/^\.+/, '_');
  const whole = name.replaceAll(/[/\\]/g, '_').replace(/^\.{1,2}$/, '_');
  return `filename="${plain}"; filename*=UTF-8''${percentEncoded(whole)}`;
}

/** Encodes text by RFC 8187, 3.2: unlike `encodeURIComponent`, also `'()*`. Accepts lone surrogates. */
function percentEncoded(name: string): string {
  const code = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(name.toWellFormed()).replaceAll(/['()*]/g, code);
}
