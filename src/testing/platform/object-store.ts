import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { ARCHIVE_BYTES_MAX } from '../../clients/control-plane/upload/source-archive.ts';
import { decompressed } from '../../receiver/http/request-body.ts';
import type { Call, Route, RouteResponse } from '../../receiver/http/route.ts';

/** How long an upload URL is valid, in seconds. */
const VALID_S = 900;

/** Stores uploads, at URLs that are signed for one path and method. */
export class ObjectStore {
  readonly route: Route;
  readonly #uploads: Map<string, Uint8Array>;
  readonly #url: () => string;
  readonly #secret: Buffer = randomBytes(32);

  constructor(uploads: Map<string, Uint8Array>, url: () => string) {
    this.#uploads = uploads;
    this.#url = url;
    const path = '/objects/uploads/:deployment/:name';
    this.route = { method: 'PUT', path, admission: 'anyone', handle: (call) => this.#put(call) };
  }

  has(path: string): boolean {
    return this.#uploads.has(path);
  }

  /** Returns a new path for the source of a deployment, and the URL that accepts the source. */
  issue(deploymentId: string): { readonly object_path: string; readonly upload_url: string } {
    const path = `uploads/${deploymentId}/${randomUUID()}.tar.gz`;
    const expires = `${Math.floor(Date.now() / 1_000) + VALID_S}`;
    const query = new URLSearchParams({ 'X-Expires': expires, 'X-Signature': this.#signature(path, expires) });
    return { object_path: path, upload_url: `${this.#url()}/objects/${path}?${query}` };
  }

  async #put(call: Call): Promise<RouteResponse> {
    const { request, parameters, search } = call;
    const { headers } = request;
    const path = `uploads/${parameters.deployment}/${parameters.name}`;
    if (headers['x-api-key'] !== undefined || headers.authorization !== undefined)
      return refusal(400, 'InvalidArgument', 'The URL is signed: send no API key to it');
    const expires = search.get('X-Expires') ?? '';
    if (search.get('X-Signature') !== this.#signature(path, expires))
      return refusal(403, 'SignatureDoesNotMatch', 'The URL is not signed for this path and method');
    if (Number(expires) * 1_000 <= Date.now()) return refusal(403, 'ExpiredToken', 'The URL has expired');
    for (const [name, value] of Object.entries(SIGNED_HEADERS)) {
      if (headers[name] === value) continue;
      return refusal(403, 'SignatureDoesNotMatch', `Expected the header ${name} to be ${value ?? 'absent'}`);
    }
    const length = Number(headers['content-length']);
    if (!(length <= ARCHIVE_BYTES_MAX))
      return refusal(403, 'EntityTooLarge', `Expected a content-length of at most ${ARCHIVE_BYTES_MAX}`);
    call.liftTimeout();
    const chunks: Buffer[] = [];
    for await (const chunk of decompressed(request)) chunks.push(chunk);
    this.#uploads.set(path, Buffer.concat(chunks));
    return { status: 200, content: '' };
  }

  /** The text contains characters that a URL must encode, as the signatures of object stores do. */
  #signature(path: string, expires: string): string {
    return createHmac('sha256', this.#secret).update(`PUT ${path} ${expires}`).digest('base64');
  }
}

const SIGNED_HEADERS: Readonly<Record<string, string | undefined>> = {
  'content-encoding': undefined,
  'content-type': 'application/gzip',
  'x-goog-content-length-range': `0,${ARCHIVE_BYTES_MAX}`,
};

function refusal(status: number, code: string, message: string): RouteResponse {
  const content = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return { status, headers: { 'content-type': 'application/xml' }, content };
}
