import type { RevisionStatus } from '../../clients/control-plane/revision.ts';
import type { Spelling } from '../../clients/control-plane/spelling.ts';
import type { RunQuery } from '../../receiver/domain/query/query.ts';
import type { StoredRun } from '../../receiver/domain/run-view.ts';
import type { ReceiverFaults } from '../../receiver/http/server/faults.ts';
import type { AssistantFunction } from './assistant.ts';
import type { PlatformAnswer, PlatformRequest } from './requests.ts';

/** Options of `createPlatform`, all of them optional. */
export interface PlatformOptions {
  /** Address to listen on. Only addresses of this machine are accepted. @default '127.0.0.1' */
  host?: string;
  /** Port to listen on. `0` selects a free port. @default 0 */
  port?: number;
  /**
   * The accepted API keys, each with the ids of the workspaces that it reaches. A key of several workspaces requires the
   * header `X-Tenant-Id`.
   * @default one key, `platform-key`, with one workspace
   */
  keys?: Readonly<Record<string, readonly string[]>>;
  /**
   * Which sources deployments may have. The cloud deploys from all sources except `external_container`, and a
   * self-hosted platform only from `external_container`.
   * @default 'cloud'
   */
  hosting?: 'cloud' | 'self-hosted';
  /**
   * Duration of each status of a revision, in milliseconds. With `0`, each response with the revision ends its status.
   * @default 200
   */
  statusMs?: number;
  /** The platform's own names, if they differ from those of the interface, as in `ControlPlane`. */
  spelling?: Spelling;
  /**
   * The assistants of each agent server, keyed by graph name.
   * @default an assistant named `agent`, which repeats the last message
   */
  assistants?: Readonly<Record<string, AssistantFunction>>;
}

/** A platform in this process: control plane, agent servers, feedback and trace ingestion at one address. */
export interface Platform {
  /** Base URL of the control plane and of trace ingestion. */
  readonly url: string;
  /** URL of an agent server that exists without a deployment. */
  readonly agentUrl: string;
  /** The first of the accepted API keys. */
  readonly apiKey: string;
  /** Id of the first workspace that this key reaches. */
  readonly tenantId: string;
  /** The requests received so far, oldest first. At most the last 10,000 are kept. */
  readonly requests: readonly PlatformRequest[];
  /** Uploaded objects by object path. */
  readonly uploads: ReadonlyMap<string, Uint8Array>;
  /**
   * Answers the next request whose `METHOD /path` matches, instead of the platform. An answer that throws, or that
   * destroys the request's socket, breaks the connection.
   */
  next(request: RegExp, answer: PlatformAnswer): void;
  /**
   * Sets the statuses of revisions that are created from now on, for example `['BUILDING', 'BUILD_FAILED']`. The last
   * status stays.
   */
  setStatuses(statuses: readonly RevisionStatus[]): void;
  /** Creates a revision as a push to the repository does, and returns its id. */
  push(deploymentId: string): string;
  /** Sets the faults of trace ingestion, as in a receiver. Pass `{}` to remove them. */
  setFaults(faults: ReceiverFaults): void;
  /** Returns the stored runs of the first workspace that match the query, sorted by `dotted_order`. */
  runs(query?: RunQuery): Promise<StoredRun[]>;
  /** Stops listening. The data is lost. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
