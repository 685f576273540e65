import type { Readable } from 'node:stream';
import { FUNCTION } from '../../../config/checker.ts';
import { nodeModule } from '../../../platform/node.ts';
import { Api, type ApiResponse } from '../../api.ts';
import { type CallOptions, type ClientOptions, callOptionsOf, preSignedUrl } from '../../client-options.ts';
import { type Endpoint, type PreparedCall, preparedCall } from '../../endpoint.ts';
import { ApiError } from '../../errors.ts';
import { tracedCall } from '../../tracing.ts';
import type { ControlPlaneApi } from '../control-plane-api.ts';
import { ARCHIVE_BYTES_MAX, type SourceArchive, sourceArchive } from './source-archive.ts';

const UPLOAD_TIMEOUT_MS = 10 * 60_000;

const HEADERS = { 'content-type': 'application/gzip', 'x-goog-content-length-range': `0,${ARCHIVE_BYTES_MAX}` };

/** Options for uploading a source. */
export interface UploadSourceOptions extends CallOptions {
  /** Timeout for sending the archive, in milliseconds. @default 600_000 */
  timeoutMs?: number;
  /**
   * Called once the archive is packed, and after each chunk is sent. A retry starts again at 0 bytes. If `onProgress`
   * returns a promise, the upload awaits the promise. If `onProgress` throws an error, the upload ends.
   */
  onProgress?: (progress: UploadProgress) => void;
}

/** Progress of an upload, as passed to `onProgress`. */
export interface UploadProgress {
  /** Size of the archive in bytes. */
  readonly bytes: number;
  readonly sentBytes: number;
}

/** An uploaded source. To deploy the source, pass this object to `update` as `source_revision_config`. */
export interface UploadedSource {
  readonly source_tarball_path: string;
}

/** Where to upload a source. */
export interface UploadUrl {
  /**
   * Upload URL. Keep this URL secret, because anyone who has the URL can upload. A service may return only
   * `object_path`. Then upload the source in the way that the service describes.
   */
  upload_url?: string | null;
  /** Path to set as `source_revision_config.source_tarball_path` after the upload. */
  object_path: string;
}

/** Client options that also apply to uploads. API keys and headers are excluded, because uploads must not send them. */
export type UploadConnection = Pick<
  ClientOptions,
  'dispatcher' | 'hooks' | 'connectTimeoutMs' | 'maxRetries' | 'allowInsecure'
>;

const UPLOAD_SOURCE = {
  name: 'deployments.uploadSource',
  method: 'PUT',
  path: '/{deployment_id:uuid}',
  options: { onProgress: FUNCTION },
} satisfies Endpoint;

const NO_UPLOAD_URL =
  'has no upload_url; upload the source in the way that the service describes, and set object_path as source_tarball_path';

export const UPLOAD_URL: Endpoint = {
  name: 'deployments.uploadUrl',
  method: 'POST',
  path: '/v2/deployments/{deployment_id:uuid}/upload-url',
  // If a retry requests a second URL, no harm is done.
  isIdempotent: true,
};

export const UNVERSIONED_UPLOAD_URL: Endpoint = { ...UPLOAD_URL, path: UPLOAD_URL.path.replace('/v2', '') };

/**
 * Uploads a deployment's source to a URL that the service returns. The API description is unclear about whether the
 * path for requesting this URL includes a version. The client tries both paths, starting with the path that last
 * worked.
 */
export class SourceUpload {
  readonly #api: ControlPlaneApi;
  readonly #connection: UploadConnection;
  #isVersioned = true;

  constructor(api: ControlPlaneApi, connection: UploadConnection) {
    this.#api = api;
    this.#connection = connection;
  }

  async send(deploymentId: string, path: string | URL, given: UploadSourceOptions = {}): Promise<UploadedSource> {
    const { name, ids, own, options = {} } = preparedCall(UPLOAD_SOURCE, { ids: [deploymentId], options: given });
    const onProgress = own.onProgress as UploadSourceOptions['onProgress'];
    const inputs = (): Record<string, unknown> => ({ ...ids, source: String(path) });
    return tracedCall({ name, runType: 'tool', inputs }, async () => {
      const archive = await sourceArchive(name, path, options.signal);
      try {
        const { call, response } = await this.#requestUrl(deploymentId, callOptionsOf(options));
        const { upload_url, object_path } = response.data;
        if (typeof upload_url !== 'string') throw this.#api.api.invalidResponse(call, response, NO_UPLOAD_URL);
        await this.#put(upload_url, archive, { ...options, onProgress } as UploadSourceOptions);
        return { source_tarball_path: object_path };
      } finally {
        await archive.remove();
      }
    });
  }

  async url(deploymentId: string, options: CallOptions | undefined): Promise<UploadUrl> {
    return (await this.#requestUrl(deploymentId, options)).response.data;
  }

  async #requestUrl(deploymentId: string, options: CallOptions | undefined): Promise<ReceivedUrl> {
    const request = async (isVersioned: boolean): Promise<ReceivedUrl> => {
      const call = preparedCall(isVersioned ? UPLOAD_URL : UNVERSIONED_UPLOAD_URL, { ids: [deploymentId], options });
      // The upload URL is a credential, so it is not recorded.
      const response = await this.#api.traced<UploadUrl>(call, () => ({}));
      this.#isVersioned = isVersioned;
      const { upload_url, object_path } = response.data;
      if (typeof object_path !== 'string') throw this.#api.api.invalidResponse(call, response, 'has no object_path');
      if (typeof (upload_url ?? '') === 'string') return { call, response };
      throw this.#api.api.invalidResponse(call, response, 'has an upload_url that is not a string');
    };
    const isVersioned = this.#isVersioned;
    return request(isVersioned).catch((thrown: unknown) => {
      if (isUnknownPath(thrown, deploymentId)) return request(!isVersioned);
      throw thrown;
    });
  }

  /**
   * Uploads the archive without the client's API key and headers. The upload URL belongs to another service and is
   * itself the credential.
   */
  async #put(uploadUrl: string, archive: SourceArchive, options: UploadSourceOptions): Promise<void> {
    const { onProgress, signal, timeoutMs = UPLOAD_TIMEOUT_MS, maxRetries } = options;
    const { allowInsecure, dispatcher, hooks, connectTimeoutMs, maxRetries: retriesOfClient } = this.#connection;
    const { origin, pathname, search, searchParams } = preSignedUrl('upload_url', uploadUrl, allowInsecure);
    // The query contains a signature, so errors must mask it.
    const encoded = search.split(/[?&]/).map((pair) => pair.slice(pair.indexOf('=') + 1));
    const secrets = [search, ...encoded, ...searchParams.values()];
    const connection = { dispatcher, hooks, connectTimeoutMs, maxRetries: retriesOfClient };
    const api = new Api({ url: new URL(origin), secrets, ...connection });
    const failure = new AbortController();
    const signals = [failure.signal, this.#api.api.closing, ...(signal ? [signal] : [])];
    let reported: Promise<void> | undefined;
    const report = (sentBytes: number): Promise<void> => {
      reported = (async () => onProgress?.({ bytes: archive.bytes, sentBytes }))();
      reported.catch((thrown: unknown) => failure.abort(thrown));
      return reported;
    };
    const stream = (): Readable => {
      const chunks = nodeModule('node:stream').Readable.from(chunksOf(archive.path, report), { objectMode: false });
      // The call already rejects with this error. The listener only prevents an uncaught exception.
      return chunks.on('error', () => undefined);
    };
    try {
      const { body } = await api.open({
        name: UPLOAD_SOURCE.name,
        method: 'PUT',
        path: pathname + search,
        headers: HEADERS,
        stream: () => ({ stream: stream(), bytes: archive.bytes }),
        options: { timeoutMs, ...(maxRetries !== undefined && { maxRetries }), signal: AbortSignal.any(signals) },
      });
      body.destroy();
      await reported;
    } finally {
      await api.close();
    }
  }
}

interface ReceivedUrl {
  readonly call: PreparedCall;
  readonly response: ApiResponse<UploadUrl>;
}

/** Yields the chunks of an archive. Reports the progress before the first chunk and after each chunk. */
async function* chunksOf(path: string, report: (sentBytes: number) => Promise<void>): AsyncGenerator<Buffer> {
  let sentBytes = 0;
  await report(sentBytes);
  for await (const chunk of nodeModule('node:fs').createReadStream(path)) {
    yield chunk;
    sentBytes += chunk.length;
    await report(sentBytes);
  }
}

/**
 * Returns whether a 404 or 405 response means that the path is unknown. If the deployment is unknown, the 404 contains
 * the deployment's id.
 */
function isUnknownPath(thrown: unknown, deploymentId: string): boolean {
  if (!(thrown instanceof ApiError)) return false;
  return thrown.status === 405 || (thrown.status === 404 && !thrown.detail?.includes(deploymentId));
}
