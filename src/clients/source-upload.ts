import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { type Checks, checkedOptions } from '../base/options.ts';
import { Api } from './api.ts';
import { type CallOptions, type ClientOptions, callChecks, callOptionsOf } from './client-options.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import { checkRequest } from './request-check.ts';
import { Secrets } from './secrets.ts';
import { serviceAddress } from './service-address.ts';
import { ARCHIVE_BYTES_MAX, type SourceArchive, sourceArchive } from './source-archive.ts';
import { tracedCall } from './traced-call.ts';
import { uploadUrl } from './upload-url.ts';

const NAME = 'deployments.uploadSource';

/** A large source takes its time. */
const UPLOAD_TIMEOUT_MS = 10 * 60_000;

/** Values of the query that are shorter are no signatures, but words that stand elsewhere too. */
const SIGNING_LENGTH_MIN = 16;

const HEADERS = {
  'content-type': 'application/gzip',
  'x-goog-content-length-range': `0,${ARCHIVE_BYTES_MAX}`,
};

/** How a source is sent. */
export interface UploadSourceOptions extends CallOptions {
  /**
   * Milliseconds to send the archive.
   *
   * @default 600_000
   */
  timeoutMs?: number;
  /**
   * Told when the archive is packed, and as its bytes go; with another attempt from the beginning. A promise of it is awaited. What
   * it throws ends the upload.
   */
  onProgress?: (progress: UploadProgress) => void;
}

export interface UploadProgress {
  /** Of the archive. */
  readonly bytes: number;
  /** Of these, that have gone. */
  readonly sentBytes: number;
}

/** What the source is called at the service, for `source_revision_config` of an update. */
export interface UploadedSource {
  readonly source_tarball_path: string;
}

/** What uploads take over from the client. Its keys and headers are none of it. */
export type UploadConnection = Pick<
  ClientOptions,
  'dispatcher' | 'hooks' | 'connectTimeoutMs' | 'maxRetries' | 'allowInsecure'
>;

/** Sends the source of a deployment to where the service says. */
export class SourceUpload {
  readonly #api: ControlPlaneApi;
  readonly #connection: UploadConnection;

  constructor(api: ControlPlaneApi, connection: UploadConnection) {
    this.#api = api;
    this.#connection = connection;
  }

  async send(deploymentId: string, path: string | URL, options: UploadSourceOptions = {}): Promise<UploadedSource> {
    const checked = checkedOptions<UploadSourceOptions>(`the options of ${NAME}`, options, uploadChecks);
    const told = { deployment_id: deploymentId };
    checkRequest(NAME, { path: told });
    const inputs = (): Record<string, unknown> => ({ ...told, source: String(path) });
    return tracedCall({ name: NAME, runType: 'tool', inputs }, () => this.#send(deploymentId, path, checked));
  }

  async #send(deploymentId: string, path: string | URL, options: UploadSourceOptions): Promise<UploadedSource> {
    const archive = await sourceArchive(NAME, path, options.signal);
    try {
      const { upload_url, object_path } = await uploadUrl(this.#api, deploymentId, callOptionsOf(options));
      await this.#put(upload_url, archive, options);
      return { source_tarball_path: object_path };
    } finally {
      await archive.remove();
    }
  }

  /** The address is a credential, of another service: nothing of ours goes there. */
  async #put(uploadAddress: string, archive: SourceArchive, options: UploadSourceOptions): Promise<void> {
    const { allowInsecure, dispatcher, hooks, connectTimeoutMs, maxRetries } = this.#connection;
    const { url, path, secrets } = addressOf(uploadAddress, allowInsecure);
    const { timeoutMs = UPLOAD_TIMEOUT_MS } = options;
    const api = new Api({
      url,
      headers: {},
      secrets: new Secrets(secrets),
      ...(dispatcher && { dispatcher }),
      ...(hooks && { hooks }),
      ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
    });
    const reading = new Reading(archive, options.onProgress);
    const signal = AbortSignal.any([reading.stopped, this.#api.closing, ...(options.signal ? [options.signal] : [])]);
    try {
      const { body } = await api.open({
        name: NAME,
        method: 'PUT',
        path,
        headers: HEADERS,
        stream: () => ({ stream: reading.again(), bytes: archive.bytes }),
        options: { timeoutMs, signal, ...retriesOf(options.maxRetries ?? maxRetries) },
      });
      body.resume();
      await reading.told;
    } finally {
      reading.end();
      await api.close();
    }
  }
}

/** An archive as it is read, from its beginning with each attempt. */
class Reading {
  readonly #archive: SourceArchive;
  readonly #onProgress: UploadSourceOptions['onProgress'];
  readonly #stop: AbortController = new AbortController();
  #stream: Readable | undefined;
  #told: Promise<void> = Promise.resolve();

  constructor(archive: SourceArchive, onProgress: UploadSourceOptions['onProgress']) {
    this.#archive = archive;
    this.#onProgress = onProgress;
  }

  /** Aborted with what the caller's own function throws. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** Settles with the function that is under way. */
  get told(): Promise<void> {
    return this.#told;
  }

  again(): Readable {
    this.end();
    this.#stream = Readable.from(this.#chunks(), { objectMode: false });
    return this.#stream;
  }

  end(): void {
    this.#stream?.on('error', () => undefined).destroy();
  }

  async *#chunks(): AsyncGenerator<Buffer, void, undefined> {
    let sentBytes = 0;
    await this.#tell(sentBytes);
    for await (const chunk of createReadStream(this.#archive.path)) {
      yield chunk;
      sentBytes += chunk.length;
      await this.#tell(sentBytes);
    }
  }

  #tell(sentBytes: number): Promise<void> {
    this.#told = this.#call(sentBytes);
    return this.#told;
  }

  async #call(sentBytes: number): Promise<void> {
    try {
      await this.#onProgress?.({ bytes: this.#archive.bytes, sentBytes });
    } catch (thrown) {
      this.#stop.abort(thrown);
      throw thrown;
    }
  }
}

/** The address in parts, and what of it no error may repeat: its query, which signs it. */
function addressOf(
  given: string,
  allowInsecure: boolean | undefined,
): { readonly url: URL; readonly path: string; readonly secrets: readonly string[] } {
  const address = URL.canParse(given) ? new URL(given) : undefined;
  const bare = address === undefined || address.username !== '' ? given : address.origin + address.pathname;
  const { origin } = serviceAddress('upload_url', bare, { hasKey: true, allowInsecure });
  const { pathname = '', search = '' } = address ?? {};
  const values = search
    .slice(1)
    .split('&')
    .flatMap((pair) => pair.slice(pair.indexOf('=') + 1));
  const signing = values.filter((value) => value.length >= SIGNING_LENGTH_MIN);
  const decoded = [...(address?.searchParams.values() ?? [])].filter((value) => value.length >= SIGNING_LENGTH_MIN);
  return { url: new URL(origin), path: pathname + search, secrets: [search, ...signing, ...decoded] };
}

function retriesOf(maxRetries: number | undefined): { maxRetries?: number } {
  return maxRetries === undefined ? {} : { maxRetries };
}

const uploadChecks: Checks<UploadSourceOptions> = {
  ...callChecks,
  onProgress: ['a function', (value) => typeof value === 'function'],
};
