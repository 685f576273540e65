import { cut, messageOf } from '../../base/text.ts';
import { type Checks, checkedOptions, FUNCTION, WHOLE_FROM_1 } from '../../config/checker.ts';
import { isTransient } from '../../http/retry.ts';
import { monotonicNowMs } from '../../platform/timers.ts';
import { type Answer, retryAfterMs } from '../api.ts';
import { type CallOptions, callChecks } from '../client-options.ts';
import { callOf, type Endpoint, type PreparedCall } from '../endpoint.ts';
import { ApiError, ConnectionError, DETAIL_MAX, InvalidAnswerError, TimeoutError } from '../errors.ts';
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

type Waited = Omit<WaitOptions, 'revisionId'>;

export async function waitUntilDeployed(
  api: ControlPlaneApi,
  deploymentId: string,
  options: WaitOptions = {},
): Promise<Deployed> {
  const { revisionId } = options;
  const endpoint = revisionId === undefined ? GET_DEPLOYMENT : GET_REVISION;
  const { name, ids } = callOf(endpoint, { ids: [deploymentId, revisionId ?? ''] });
  return waiting(api, name, ids, options, (wait) => wait.deployed(deploymentId, revisionId));
}

export async function createAndWait(api: ControlPlaneApi, call: PreparedCall, options?: Waited): Promise<Deployed> {
  const { name } = call.body as DeploymentCreate;
  return waiting(api, 'deployments.createAndWait', { name }, options, async (wait) => {
    const answer = await wait.change<Deployment>(call);
    const { id, latest_revision_id } = answer.data;
    if (typeof id !== 'string') throw api.api.invalidAnswer(call, answer, 'has no id');
    return wait.deployed(id, latest_revision_id);
  });
}

export async function updateAndWait(
  api: ControlPlaneApi,
  deploymentId: string,
  call: PreparedCall,
  options?: Waited,
): Promise<Updated> {
  return waiting<Updated>(api, 'deployments.updateAndWait', call.ids, options, async (wait) => {
    // Compare the latest revision before and after the update, to detect whether the update created a revision.
    const before = createsRevision(call.body as DeploymentPatch) && (await wait.latestRevision(deploymentId));
    const { data } = await wait.change<Deployment>(call);
    if (before === false) return { deployment: data, revision: undefined };
    const isChanged = (data.latest_revision_id ?? null) !== before;
    const changed = isChanged ? data : await wait.changed(deploymentId, before);
    if (changed === undefined) return { deployment: data, revision: undefined };
    return wait.responded().deployed(deploymentId, changed.latest_revision_id);
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
    const { data } = await wait.change<Deployment>(call);
    return wait.deployed(deploymentId, data.latest_revision_id);
  });
}

const GET_REVISION: Endpoint = { ...REVISIONS.get, name: 'deployments.waitUntilDeployed' };
const GET_DEPLOYMENT: Endpoint = { ...GET_REVISION, path: '/v2/deployments/{deployment_id:uuid}' };

/** Inside a traced function, the whole wait is recorded as one child run, without the polls. */
function waiting<Result extends Updated>(
  api: ControlPlaneApi,
  name: string,
  inputs: Record<string, unknown>,
  options: WaitOptions = {},
  wait: (wait: RevisionWait) => Promise<Result>,
): Promise<Result> {
  const { revisionId: _, ...others } = CHECKS;
  const checks = (name === GET_REVISION.name ? CHECKS : others) as typeof CHECKS;
  const checked = checkedOptions<WaitOptions>(`the options of ${name}`, options, checks);
  const outputs = (result: Result): Record<string, unknown> => withoutSecretValues(result) as Record<string, unknown>;
  const run = { name, runType: 'tool', inputs: () => inputs, outputs } as const;
  const revisionWait = new RevisionWait(api, checked);
  return tracedCall(run, () => wait(revisionWait));
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
  /** Time at which the awaited revision became the latest revision. */
  #newSinceMs: number = this.#startedMs;
  /** Whether the service has responded. Before the first response, a failure suggests a wrong base URL. */
  #isReached = false;
  /** The later revision most recently passed to `onSuperseded`. */
  #reportedLatest: string | undefined;
  #retryAfterMs = 0;
  #lastError: unknown;

  constructor(api: ControlPlaneApi, options: WaitOptions) {
    this.#api = api;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  async change<Resource>(call: PreparedCall): Promise<Answer<Resource>> {
    const answer = await this.#api.traced<Resource>({ ...call, options: this.#callOptions(this.#api.api.timeoutMs) });
    this.responded();
    return answer;
  }

  /**
   * Called when the service accepts a change. For a short time, the service may still return an earlier revision as the
   * latest.
   */
  responded(): this {
    this.#isReached = true;
    this.#newSinceMs = monotonicNowMs();
    return this;
  }

  async latestRevision(deploymentId: string): Promise<string | null> {
    const options = this.#callOptions(this.#api.api.timeoutMs);
    const { data } = await this.#api.send<Deployment>(callOf(GET_DEPLOYMENT, { ids: [deploymentId], options }));
    return data.latest_revision_id ?? null;
  }

  async deployed(deploymentId: string, revisionId: string | null | undefined): Promise<Deployed> {
    this.#deploymentId = deploymentId;
    this.#revisionId = revisionId ?? undefined;
    return this.#until(() => this.#poll());
  }

  /**
   * Waits until the deployment's latest revision differs from `before`. Returns the deployment, or undefined if the
   * revision does not change.
   */
  async changed(deploymentId: string, before: string | null): Promise<Deployment | undefined> {
    this.#deploymentId = deploymentId;
    const { deployment } = await this.#until(async () => {
      const deployment = await this.#getDeployment();
      if ((deployment.latest_revision_id ?? null) !== before) return { deployment };
      return this.#isEarly ? undefined : { deployment: undefined };
    });
    return deployment;
  }

  #callOptions(timeoutMaxMs: number): CallOptions {
    const { signal, headers } = this.#options;
    return { signal, headers, timeoutMs: Math.max(1, Math.ceil(Math.min(timeoutMaxMs, this.#leftMs))) };
  }

  get #leftMs(): number {
    return this.#timeoutMs - (monotonicNowMs() - this.#startedMs);
  }

  get #isEarly(): boolean {
    return monotonicNowMs() - this.#newSinceMs < GRACE_MS;
  }

  /** Calls `poll` repeatedly until it returns a result. Temporary failures do not end the wait. */
  async #until<Result>(poll: () => Promise<Result | undefined>): Promise<Result> {
    for (let polls = 0; ; polls++) {
      this.#retryAfterMs = 0;
      try {
        const result = await poll();
        if (result !== undefined) return result;
      } catch (thrown) {
        this.#options.signal?.throwIfAborted();
        if (!this.#isTemporary(thrown)) throw thrown;
        // Keep an earlier error, which is more informative than a timeout.
        if (!(thrown instanceof TimeoutError) || this.#lastError === undefined) this.#lastError = thrown;
      }
      await this.#pause(Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 1.5 ** Math.min(polls, 30)));
    }
  }

  async #poll(): Promise<Deployed | undefined> {
    this.#revisionId ??= (await this.#getDeployment()).latest_revision_id ?? undefined;
    if (this.#revisionId === undefined) return undefined;
    const known = this.#revision;
    // If only reading the deployment failed, the revision is not read again.
    const revision = known?.status === 'DEPLOYED' ? known : await this.#get<Revision>(GET_REVISION, this.#revisionId);
    const isChange = revision.status !== known?.status;
    this.#revision = revision;
    if (isChange) await this.#options.onStatus?.(revision);
    if (FAILED.has(revision.status)) throw this.#failed(revision);
    const deployment = await this.#getDeployment();
    if (revision.status === 'DEPLOYED') return { deployment, revision };
    const isFollowed = this.#follows(deployment.latest_revision_id);
    if (!isFollowed && GIVEN_UP.has(revision.status)) throw this.#failed(revision);
    return undefined;
  }

  /** Decides whether to wait for a later revision instead. */
  #follows(latestRevisionId: string | null | undefined): boolean {
    const revisionId = this.#revisionId;
    if (revisionId === undefined || latestRevisionId === null || latestRevisionId === undefined) return false;
    if (latestRevisionId === revisionId || latestRevisionId === this.#reportedLatest) return false;
    this.#reportedLatest = latestRevisionId;
    const decision = this.#options.onSuperseded?.({ revisionId, latestRevisionId });
    if (decision === 'stay') return false;
    if (decision !== 'follow')
      throw this.#error('RUNSPAN_REVISION_SUPERSEDED', `was superseded by ${latestRevisionId}`);
    this.#revisionId = latestRevisionId;
    this.#revision = undefined;
    this.#newSinceMs = monotonicNowMs();
    return true;
  }

  #isTemporary(thrown: unknown): boolean {
    if (thrown instanceof TimeoutError) return true;
    // A web page may come from a restarting proxy or a wrong base URL. An earlier valid response rules out a wrong base
    // URL.
    if (thrown instanceof InvalidAnswerError) return this.#isReached;
    if (thrown instanceof ConnectionError) return this.#isReached || this.#isEarly;
    if (!(thrown instanceof ApiError)) return false;
    this.#retryAfterMs = retryAfterMs(thrown) ?? 0;
    if (thrown.status === 404) return this.#revision === undefined && this.#isEarly;
    return isTransient(thrown.status);
  }

  async #pause(defaultMs: number): Promise<void> {
    const delayMs = Math.max(this.#options.intervalMs ?? defaultMs, this.#retryAfterMs);
    if (this.#leftMs > 0) await this.#api.api.wait(Math.min(delayMs, this.#leftMs), this.#options.signal);
    if (this.#leftMs > 0) return;
    const seen = this.#revision === undefined ? 'its status is unknown' : `its status is ${this.#revision.status}`;
    const cause = this.#lastError;
    const isOutOfTime = cause instanceof TimeoutError && this.#revision !== undefined;
    const reason = cause === undefined || isOutOfTime ? '' : `; the last poll failed: ${messageOf(cause)}`;
    const problem = `was not deployed within ${this.#timeoutMs} ms; ${seen}${reason}`;
    throw this.#error('RUNSPAN_TIMEOUT', problem, cause === undefined ? {} : { cause });
  }

  #getDeployment(): Promise<Deployment> {
    return this.#get(GET_DEPLOYMENT);
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

  #failed(revision: Revision): RevisionError {
    const reason = reasonOf(revision);
    const problem = `will not be deployed: its status is ${revision.status}${reason && `: ${reason}`}`;
    return this.#error('RUNSPAN_REVISION_FAILED', problem);
  }

  #error(code: RevisionErrorCode, problem: string, options?: ErrorOptions): RevisionError {
    const facts = { deploymentId: this.#deploymentId, revisionId: this.#revisionId, revision: this.#revision };
    return new RevisionError(code, facts, problem, options);
  }
}

/**
 * Returns the reason for a revision's status, or an empty string. The API does not specify which field contains the
 * reason.
 */
function reasonOf({ status_message, message, error }: Revision): string {
  const reason = [status_message, message, error].find((text) => typeof text === 'string' && text.trim() !== '');
  return typeof reason === 'string' ? cut(reason.trim(), 2 * DETAIL_MAX) : '';
}
