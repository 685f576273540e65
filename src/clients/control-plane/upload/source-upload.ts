import type { Readable } from 'node:stream';
import { nodeModule } from '../../../base/node.ts';
import { Api } from '../../api.ts';
import { type CallOptions, type ClientOptions, callOptionsOf, FUNCTION, serviceAddress } from '../../client-options.ts';
import { callOf, type Endpoint } from '../../endpoint.ts';
import { ApiError } from '../../errors.ts';
import { tracedCall } from '../../tracing.ts';
import type { ControlPlaneApi } from '../control-plane-api.ts';
import { ARCHIVE_BYTES_MAX, type SourceArchive, sourceArchive } from './source-archive.ts';

const UPLOAD_TIMEOUT_MS = 10 * 60_000;

const HEADERS = {
  'content-type': 'application/gzip',
  'x-goog-content-length-range': `0,${ARCHIVE_BYTES_MAX}`,
};

/** Options for uploading a source. */
export interface UploadSourceOptions extends CallOptions {
  /** Timeout to send the archive, in milliseconds. @default 600_000 */
  timeoutMs?: number;
  /**
   * Called when the archive is packed and after each chunk. A retry starts again at 0. Promises are awaited. An error
   * ends the upload.
   */
  onProgress?: (progress: UploadProgress) => void;
}

export interface UploadProgress {
  /** Size of the archive. */
  readonly bytes: number;
  readonly sentBytes: number;
}

/** An uploaded source. Pass it as `source_revision_config` of an update. */
export interface UploadedSource {
  readonly source_tarball_path: string;
}

/** A URL for uploading a source. */
export interface UploadUrl {
  /** Anyone who has the URL can use it. */
  upload_url: string;
  /** Value of `source_revision_config.source_tarball_path` after the upload. */
  object_path: string;
}

/** Client options that also apply to uploads. Keys and headers do not apply. */
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

const UPLOAD_URL: Endpoint = {
  name: 'deployments.uploadUrl',
  method: 'POST',
  path: '/v2/deployments/{deployment_id:uuid}/upload-url',
  // Requesting a second URL does no harm.
  isIdempotent: true,
};

/**
 * Uploads the source of a deployment to a URL that the service returns. The interface lists the path for requesting the
 * URL without a version, but states that every path has one. Both paths are supported. The last working path is tried
 * first.
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
    const { name, ids, own, options = {} } = callOf(UPLOAD_SOURCE, { ids: [deploymentId], options: given });
    const onProgress = own.onProgress as UploadSourceOptions['onProgress'];
    const inputs = (): Record<string, unknown> => ({ ...ids, source: String(path) });
    return tracedCall({ name, runType: 'tool', inputs }, async () => {
      const archive = await sourceArchive(name, path, options.signal);
      try {
        const { upload_url, object_path } = await this.url(deploymentId, callOptionsOf(options));
        await this.#put(upload_url, archive, { ...options, onProgress } as UploadSourceOptions);
        return { source_tarball_path: object_path };
      } finally {
        await archive.remove();
      }
    });
  }

  async url(deploymentId: string, options: CallOptions | undefined): Promise<UploadUrl> {
    const request = async (isVersioned: boolean): Promise<UploadUrl> => {
      const path = isVersioned ? UPLOAD_URL.path : UPLOAD_URL.path.replace('/v2', '');
      const call = callOf({ ...UPLOAD_URL, path }, { ids: [deploymentId], options });
      // The URL is a credential, so it is not recorded.
      const answer = await this.#api.traced<UploadUrl>(call, () => ({}));
      this.#isVersioned = isVersioned;
      const { upload_url, object_path } = answer.data;
      if (typeof upload_url === 'string' && typeof object_path === 'string') return answer.data;
      throw this.#api.api.invalidAnswer(call, answer, 'has no upload_url and object_path');
    };
    const isVersioned = this.#isVersioned;
    return request(isVersioned).catch((thrown: unknown) => {
      if (isUnknownPath(thrown, deploymentId)) return request(!isVersioned);
      throw thrown;
    });
  }

  /** Sends no key and no header of the client, because the URL belongs to another service and is a credential. */
  async #put(uploadUrl: string, archive: SourceArchive, options: UploadSourceOptions): Promise<void> {
    const { onProgress, signal, timeoutMs = UPLOAD_TIMEOUT_MS, maxRetries } = options;
    const { allowInsecure, dispatcher, hooks, connectTimeoutMs, maxRetries: retriesOfClient } = this.#connection;
    const { url, path, secrets } = parseUploadUrl(uploadUrl, allowInsecure);
    const api = new Api({ url, secrets, dispatcher, hooks, connectTimeoutMs, maxRetries: retriesOfClient });
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
      // The call rejects with the error. Without a listener, the error would be an uncaught exception.
      return chunks.on('error', () => undefined);
    };
    try {
      const { body } = await api.open({
        name: UPLOAD_SOURCE.name,
        method: 'PUT',
        path,
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

/** Reads an archive, and reports the progress before and after each chunk. */
async function* chunksOf(path: string, report: (sentBytes: number) => Promise<void>): AsyncGenerator<Buffer> {
  let sentBytes = 0;
  await report(sentBytes);
  for await (const chunk of nodeModule('node:fs').createReadStream(path)) {
    yield chunk;
    sentBytes += chunk.length;
    await report(sentBytes);
  }
}

/** A 404 response about the deployment contains its id, unlike a 404 response about the path. */
function isUnknownPath(thrown: unknown, deploymentId: string): boolean {
  if (!(thrown instanceof ApiError)) return false;
  return thrown.status === 405 || (thrown.status === 404 && !thrown.detail?.includes(deploymentId));
}

/** Splits the URL. Errors must not show its query, which is a signature. */
function parseUploadUrl(
  given: string,
  allowInsecure: boolean | undefined,
): { readonly url: URL; readonly path: string; readonly secrets: readonly string[] } {
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  const withoutQuery = parsed === undefined || parsed.username !== '' ? given : parsed.origin + parsed.pathname;
  const { origin } = serviceAddress('upload_url', withoutQuery, { hasKey: true, allowInsecure });
  const { pathname = '', search = '', searchParams = new URLSearchParams() } = parsed ?? {};
  const encoded = search.split(/[?&]/).map((pair) => pair.slice(pair.indexOf('=') + 1));
  return { url: new URL(origin), path: pathname + search, secrets: [search, ...encoded, ...searchParams.values()] };
}
