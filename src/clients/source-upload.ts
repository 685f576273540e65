import type { CallOptions, ClientOptions } from './client-options.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';

/** How a source is sent. */
export interface UploadSourceOptions extends CallOptions {
  /** Told when the archive is packed, and as its bytes go. */
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
export interface UploadConnection {
  readonly dispatcher: ClientOptions['dispatcher'] | undefined;
  readonly hooks: ClientOptions['hooks'] | undefined;
}

/** Sends the source of a deployment to where the service says. */
export class SourceUpload {
  readonly #api: ControlPlaneApi;
  readonly #connection: UploadConnection;

  constructor(api: ControlPlaneApi, connection: UploadConnection) {
    this.#api = api;
    this.#connection = connection;
  }

  async send(deploymentId: string, path: string | URL, options: UploadSourceOptions = {}): Promise<UploadedSource> {
    throw new Error(`not yet: ${deploymentId} ${path} ${options.timeoutMs} ${this.#api} ${this.#connection}`);
  }
}
