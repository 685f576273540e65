import { cut, messageOf } from '../../base/text.ts';
import { type Checks, checkedOptions, FUNCTION, WHOLE_FROM_1 } from '../../config/checker.ts';
import { isTransient } from '../../http/retry.ts';
import { monotonicNowMs } from '../../platform/timers.ts';
import { type ApiResponse, retryAfterMs } from '../api.ts';
import { type CallOptions, callChecks } from '../client-options.ts';
import { callOf, type Endpoint, type PreparedCall } from '../endpoint.ts';
import { ApiError, ConnectionError, DETAIL_MAX, InvalidResponseError, TimeoutError } from '../errors.ts';
import { tracedCall } from '../tracing.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import { createsRevision, type Deployment, type DeploymentCreate, type DeploymentPatch } from './deployment.ts';
import { REVISIONS, type Revision, RevisionError, type RevisionErrorCode } from './revision.ts';
import { withoutSecretValues } from './secret-values.ts';

/** Options for waiting until a revision is deployed. */
export interface WaitOptions extends Pick<CallOptions, 'signal' | 'headers'> {
  /** Id of the revision to wait for. @default the latest revision */
  revisionId?: string;
  /**
   * Timeout for the whole wait, including the first request, in milliseconds.
   * @default 900_000
   */
  timeoutMs?: number;
  /** Delay between two polls, in milliseconds. By default, the delay grows from 1 s to 5 s. */
  intervalMs?: number;
  /**
   * Called with the first response and after each change of the revision's status. If `onStatus` returns a promise, the
   * wait awaits the promise. If `onStatus` throws an error, the wait ends.
   */
  onStatus?: (revision: Revision) => void;
  /**
   * Called when a later revision replaces the awaited revision. Return `'follow'` to wait for the later revision, or
   * `'stay'` to keep waiting for the original one. For any other result, the wait rejects with a RevisionError.
   */
  onSuperseded?: (event: SupersededEvent) => 'follow' | 'stay' | undefined;
}

/** Ids of the awaited revision and of the later revision that replaces it. */
export interface SupersededEvent {
  readonly revisionId: string;
  readonly latestRevisionId: string;
}

/** A deployment and its deployed revision. The deployment's URL is `deployment.source_config.custom_url`. */
export interface Deployed {
  readonly deployment: Deployment;
  readonly revision: Revision;
}

/** An updated deployment. `revision` is undefined if the update created no revision. */
export interface Updated {
  readonly deployment: Deployment;
  readonly revision: Revision | undefined;
}

const TIMEOUT_MS = 15 * 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;
const POLL_TIMEOUT_MS = 30_000;

/** Time after a change during which the service may still return a 404 or the old revision. */
const GRACE_MS = 5_000;

const FAILED: ReadonlySet<string> = new Set(['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED']);

/** Statuses of a revision that may have been replaced by a later revision. */
const GIVEN_UP: ReadonlySet<string> = new Set(['SKIPPED', 'INTERRUPTED']);

const GET_REVISION: Endpoint = { ...REVISIONS.get, name: 'deployments.waitUntilDeployed' };
const GET_DEPLOYMENT: Endpoint = { ...GET_REVISION, path: '/v2/deployments/{deployment_id:uuid}' };

type Waited = Omit<WaitOptions, 'revisionId'>;

export async function waitUntilDeployed(
  api: ControlPlaneApi,
  deploymentId: string,
  options: WaitOptions = {},
): Promise<Deployed> {
  const { revisionId } = options;
  const endpoint = revisionId === undefined ? GET_DEPLOYMENT : GET_REVISION;
  const { name, ids } = callOf(endpoint, { ids: [deploymentId, revisionId ?? ''] });
  return waiting(api, name, ids, options, (wait) => wait.until(deploymentId, revisionId));
}

export async function createAndWait(api: ControlPlaneApi, call: PreparedCall, options?: Waited): Promise<Deployed> {
  const { name } = call.body as DeploymentCreate;
  return waiting(api, 'deployments.createAndWait', { name }, options, async (wait) => {
    const response = await wait.change(call);
    const { id, latest_revision_id } = response.data;
    if (typeof id !== 'string') throw api.api.invalidResponse(call, response, 'has no id');
    return wait.until(id, latest_revision_id);
  });
}

export async function updateAndWait(
  api: ControlPlaneApi,
  deploymentId: string,
  call: PreparedCall,
  options?: Waited,
): Promise<Updated> {
  return waiting<Updated>(api, 'deployments.updateAndWait', call.ids, options, async (wait) => {
    const isNew = createsRevision(call.body as DeploymentPatch);
    // The revision before the update shows whether the update has created another one.
    const before = isNew ? await wait.latestRevision(deploymentId) : null;
    const { data } = await wait.change(call);
    if (!isNew) return { deployment: data, revision: undefined };
    const latest = data.latest_revision_id ?? null;
    return latest === before ? wait.until(deploymentId, undefined, before) : wait.until(deploymentId, latest);
  });
}

export async function redeployAndWait(
  api: ControlPlaneApi,
  deploymentId: string,
  revisionId: string,
  options?: Waited,
): Promise<Deployed> {
  const call = callOf(REVISIONS.redeploy, { ids: [deploymentId, revisionId] });
  return waiting(api, 'deployments.redeployAndWait', call.ids, options, async (wait) => {
    const { data } = await wait.change(call);
    return wait.until(deploymentId, data.latest_revision_id);
  });
}

/** Inside a traced function, the whole wait is recorded as one child run, without the polls. */
function waiting<Result extends Updated>(
  api: ControlPlaneApi,
  name: string,
  inputs: Record<string, unknown>,
  options: WaitOptions = {},
  wait: (wait: RevisionWait) => Promise<Updated>,
): Promise<Result> {
  const { revisionId: _, ...others } = CHECKS;
  const checks = (name === GET_REVISION.name ? CHECKS : others) as typeof CHECKS;
  const revisionWait = new RevisionWait(api, checkedOptions<WaitOptions>(`the options of ${name}`, options, checks));
  const outputs = (result: Result): Record<string, unknown> => withoutSecretValues(result) as Record<string, unknown>;
  const run = { name, runType: 'tool', inputs: () => inputs, outputs } as const;
  return tracedCall(run, () => wait(revisionWait) as Promise<Result>);
}

const CHECKS: Checks<WaitOptions> = {
  signal: callChecks.signal,
  headers: callChecks.headers,
  revisionId: ['the id of a revision', (value) => typeof value === 'string'],
  timeoutMs: callChecks.timeoutMs,
  intervalMs: WHOLE_FROM_1,
  onStatus: FUNCTION,
  onSuperseded: FUNCTION,
};

/** Polls one revision of a deployment until it is deployed, fails or times out. */
class RevisionWait {
  readonly #api: ControlPlaneApi;
  readonly #options: WaitOptions;
  readonly #timeoutMs: number;
  readonly #startedMs: number = monotonicNowMs();
  #deploymentId = '';
  #revisionId: string | undefined;
  #revision: Revision | undefined;
  /** Time of the last change, after which the service may still return an old state. */
  #changedMs: number = this.#startedMs;
  /** Whether the service has responded. Before the first response, a failure suggests a wrong base URL. */
  #isReached = false;
  /** The later revision most recently passed to `onSuperseded`. */
  #reportedLatest: string | undefined;
  #lastError: unknown;

  constructor(api: ControlPlaneApi, options: WaitOptions) {
    this.#api = api;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  async change(call: PreparedCall): Promise<ApiResponse<Deployment>> {
    const response = await this.#api.traced<Deployment>({
      ...call,
      options: this.#callOptions(this.#api.api.timeoutMs),
    });
    this.#isReached = true;
    this.#changedMs = monotonicNowMs();
    return response;
  }

  async latestRevision(deploymentId: string): Promise<string | null> {
    const options = this.#callOptions(this.#api.api.timeoutMs);
    const { data } = await this.#api.send<Deployment>(callOf(GET_DEPLOYMENT, { ids: [deploymentId], options }));
    return data.latest_revision_id ?? null;
  }

  /**
   * Waits for a revision, by default the latest one, or a later one than `before`. `revision` is undefined if no later
   * one appears soon. Temporary failures do not end the wait.
   */
  async until(deploymentId: string, revisionId: string | null | undefined, before?: string | null): Promise<Updated> {
    this.#deploymentId = deploymentId;
    this.#revisionId = revisionId ?? undefined;
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(LONGEST_DELAY_MS, delayMs * 1.5)) {
      let pauseMs = this.#options.intervalMs ?? delayMs;
      try {
        const result = await this.#poll(before);
        if (result !== undefined) return result;
      } catch (thrown) {
        this.#options.signal?.throwIfAborted();
        if (!this.#isTemporary(thrown)) throw thrown;
        // Keep an earlier error, which is more informative than a timeout.
        if (!(thrown instanceof TimeoutError) || this.#lastError === undefined) this.#lastError = thrown;
        if (thrown instanceof ApiError) pauseMs = Math.max(pauseMs, retryAfterMs(thrown) ?? 0);
      }
      if (this.#leftMs > 0) await this.#api.api.wait(Math.min(pauseMs, this.#leftMs), this.#options.signal);
      if (this.#leftMs <= 0) throw this.#timedOut();
    }
  }

  async #poll(before: string | null | undefined): Promise<Updated | undefined> {
    if (this.#revisionId === undefined) {
      const deployment = await this.#get<Deployment>(GET_DEPLOYMENT);
      const latest = deployment.latest_revision_id ?? null;
      const isLate = before !== undefined && !this.#isEarly;
      if (latest === null || latest === before) return isLate ? { deployment, revision: undefined } : undefined;
      this.#revisionId = latest;
      if (before !== undefined) this.#changedMs = monotonicNowMs();
    }
    const known = this.#revision;
    // If only reading the deployment failed, the revision is not read again.
    const revision = known?.status === 'DEPLOYED' ? known : await this.#get<Revision>(GET_REVISION, this.#revisionId);
    const isChange = revision.status !== known?.status;
    this.#revision = revision;
    if (isChange) await this.#options.onStatus?.(revision);
    if (FAILED.has(revision.status)) throw this.#failed(revision);
    const deployment = await this.#get<Deployment>(GET_DEPLOYMENT);
    if (revision.status === 'DEPLOYED') return { deployment, revision };
    if (!this.#follows(deployment.latest_revision_id) && GIVEN_UP.has(revision.status)) throw this.#failed(revision);
    return undefined;
  }

  /** Decides whether to wait for a later revision instead. */
  #follows(latestRevisionId: string | null | undefined): boolean {
    const revisionId = this.#revisionId ?? '';
    if (!latestRevisionId || latestRevisionId === revisionId || latestRevisionId === this.#reportedLatest) return false;
    this.#reportedLatest = latestRevisionId;
    const decision = this.#options.onSuperseded?.({ revisionId, latestRevisionId });
    if (decision === 'stay') return false;
    if (decision !== 'follow')
      throw this.#error('RUNSPAN_REVISION_SUPERSEDED', `was superseded by ${latestRevisionId}`);
    this.#revisionId = latestRevisionId;
    this.#revision = undefined;
    this.#changedMs = monotonicNowMs();
    return true;
  }

  #isTemporary(thrown: unknown): boolean {
    if (thrown instanceof TimeoutError) return true;
    // A web page may come from a restarting proxy or a wrong base URL. An earlier valid response rules out a wrong base
    // URL.
    if (thrown instanceof InvalidResponseError) return this.#isReached;
    if (thrown instanceof ConnectionError) return this.#isReached || this.#isEarly;
    if (!(thrown instanceof ApiError)) return false;
    return thrown.status === 404 ? this.#revision === undefined && this.#isEarly : isTransient(thrown.status);
  }

  async #get<Resource>(endpoint: Endpoint, ...ids: readonly string[]): Promise<Resource> {
    const call = callOf(endpoint, { ids: [this.#deploymentId, ...ids] });
    // Retries are not needed, because the next poll follows soon.
    const options = { ...this.#callOptions(POLL_TIMEOUT_MS), maxRetries: 0 };
    const { data } = await this.#api.send<Resource>({ ...call, options });
    this.#isReached = true;
    this.#lastError = undefined;
    return data;
  }

  #callOptions(timeoutMaxMs: number): CallOptions {
    const { signal, headers } = this.#options;
    return { signal, headers, timeoutMs: Math.max(1, Math.ceil(Math.min(timeoutMaxMs, this.#leftMs))) };
  }

  get #leftMs(): number {
    return this.#timeoutMs - (monotonicNowMs() - this.#startedMs);
  }

  get #isEarly(): boolean {
    return monotonicNowMs() - this.#changedMs < GRACE_MS;
  }

  #timedOut(): RevisionError {
    const cause = this.#lastError;
    const isOutOfTime = cause instanceof TimeoutError && this.#revision !== undefined;
    const reason = cause === undefined || isOutOfTime ? '' : `; the last poll failed: ${messageOf(cause)}`;
    const problem = `was not deployed within ${this.#timeoutMs} ms; its status is ${this.#revision?.status ?? 'unknown'}`;
    return this.#error('RUNSPAN_TIMEOUT', problem + reason, cause === undefined ? {} : { cause });
  }

  /** The API does not specify which field contains the reason of a failure. */
  #failed({ status, status_message, message, error }: Revision): RevisionError {
    const reason = [status_message, message, error].find((text) => typeof text === 'string' && text.trim() !== '');
    const shown = typeof reason === 'string' ? `: ${cut(reason.trim(), 2 * DETAIL_MAX)}` : '';
    return this.#error('RUNSPAN_REVISION_FAILED', `will not be deployed: its status is ${status}${shown}`);
  }

  #error(code: RevisionErrorCode, problem: string, options?: ErrorOptions): RevisionError {
    const facts = { deploymentId: this.#deploymentId, revisionId: this.#revisionId, revision: this.#revision };
    return new RevisionError(code, facts, problem, options);
  }
}
