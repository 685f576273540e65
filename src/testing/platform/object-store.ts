import { randomBytes, randomUUID } from 'node:crypto';
import { ARCHIVE_BYTES_MAX } from '../../clients/control-plane/upload/source-archive.ts';
import { decompressed } from '../../receiver/http/request-body.ts';
import type { Call, Route, RouteResponse } from '../../receiver/http/route.ts';

/** How long an upload URL is valid, in seconds. */
const VALID_S = 900;

const SIGNED_HEADERS: Readonly<Record<string, string | undefined>> = {
  'content-encoding': undefined,
  'content-type': 'application/gzip',
  'x-goog-content-length-range': `0,${ARCHIVE_BYTES_MAX}`,
};

/** Stores uploads, at URLs that are valid for one path. */
export class ObjectStore {
  readonly route: Route;
  readonly #uploads: Map<string, Uint8Array>;
  /** The issued URLs, by object path. */
  readonly #issued = new Map<string, { readonly deploymentId: string; readonly query: string }>();

  constructor(uploads: Map<string, Uint8Array>) {
    this.#uploads = uploads;
    const path = '/objects/uploads/:deployment/:name';
    this.route = { method: 'PUT', path, admission: 'anyone', handle: (call) => this.#put(call) };
  }

  /** Returns a new path for the source of a deployment, and the path and query of its URL. */
  issue(deploymentId: string): { readonly path: string; readonly target: string } {
    const path = `uploads/${deploymentId}/${randomUUID()}.tar.gz`;
    const expires = `${Math.floor(Date.now() / 1_000) + VALID_S}`;
    // As in the URLs of object stores, the signature has characters that must be encoded in a URL.
    const signature = randomBytes(32).toString('base64');
    const query = `${new URLSearchParams({ 'X-Expires': expires, 'X-Signature': signature })}`;
    this.#issued.set(path, { deploymentId, query });
    return { path, target: `/objects/${path}?${query}` };
  }

  isIssued(path: string, deploymentId: string): boolean {
    return this.#issued.get(path)?.deploymentId === deploymentId;
  }

  async #put({ request, parameters, search, liftTimeout }: Call): Promise<RouteResponse> {
    const { headers } = request;
    const path = `uploads/${parameters.deployment}/${parameters.name}`;
    if ((headers['x-api-key'] ?? headers.authorization) !== undefined) return refusal('CredentialsNotAllowed', 400);
    if (this.#issued.get(path)?.query !== `${search}`) return refusal('SignatureDoesNotMatch');
    if (Number(search.get('X-Expires')) * 1_000 <= Date.now()) return refusal('ExpiredToken');
    const [wrong] = Object.entries(SIGNED_HEADERS).filter(([name, value]) => headers[name] !== value);
    if (wrong !== undefined)
      return refusal('SignatureDoesNotMatch', 403, `Expected the header ${wrong[0]} to be ${wrong[1] ?? 'absent'}`);
    if (!(Number(headers['content-length']) <= ARCHIVE_BYTES_MAX)) return refusal('EntityTooLarge');
    liftTimeout();
    const chunks: Buffer[] = [];
    for await (const chunk of decompressed(request)) chunks.push(chunk);
    this.#uploads.set(path, Buffer.concat(chunks));
    return { status: 200, content: '' };
  }
}

function refusal(code: string, status = 403, message = code): RouteResponse {
  const content = `<Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return { status, headers: { 'content-type': 'application/xml' }, content };
}
