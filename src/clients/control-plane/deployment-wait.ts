import { monotonicNowMs } from '../../base/clock.ts';
import { RunspanError } from '../../base/errors.ts';
import { ignoreRejection } from '../../base/guard.ts';
import { type Check, type Checks, checkedOptions, WHOLE_FROM_1 } from '../../base/options.ts';
import { cut, messageOf, shown } from '../../base/text.ts';
import { isTransient } from '../../http/retry.ts';
import { retryAfterMs } from '../api.ts';
import { type CallOptions, callChecks, FUNCTION } from '../client-options.ts';
import { callOf, type Endpoint, type PreparedCall } from '../endpoint.ts';
import { ApiError, ConnectionError, DETAIL_MAX, InvalidAnswerError, TimeoutError } from '../errors.ts';
import { tracedCall } from '../tracing.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import { createsRevision, type Deployment, type DeploymentPatch } from './deployment.ts';
import { REVISIONS, type Revision, RevisionError, type RevisionErrorCode } from './revision.ts';
import { withoutSecretValues } from './secret-values.ts';

/** How to wait for a deployment. */
export interface WaitOptions extends Pick<CallOptions, 'signal' | 'headers'> {
  /** @default the latest revision */
  revisionId?: string;
  /** Timeout of the wait in milliseconds, including the request that the wait begins with. @default 900_000 */
  timeoutMs?: number;
  /** Milliseconds between two polls. By default, the interval grows from 1 s to 5 s. */
  intervalMs?: number;
  /** Called with the first response and after each change of the status. Promises are awaited. An error ends the wait. */
  onStatus?: (revision: Revision) => void;
  /**
   * Called when a later revision replaces the awaited revision. `'follow'` waits for the later revision, and `'stay'`
   * still waits for this revision. Otherwise the wait rejects with a RevisionError.
   */
  onSuperseded?: (event: SupersededEvent) => 'follow' | 'stay' | undefined;
}

/** A revision that a later revision replaces. */
export interface SupersededEvent {
  readonly revisionId: string;
  readonly latestRevisionId: string;
}

/** A deployment and its deployed revision. The URL is `deployment.source_config.custom_url`. */
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

/** Time after a change in which a 404 or an old revision may still be returned. */
const GRACE_MS = 5_000;

const FAILED: ReadonlySet<string> = new Set(['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED']);

/** Statuses that a later revision may have caused. */
const GIVEN_UP: ReadonlySet<string> = new Set(['SKIPPED', 'INTERRUPTED']);

type Waited = Omit<WaitOptions, 'revisionId'>;

/** Waits for revisions. Within a run, a wait is one run and its polls are not recorded. */
export class DeploymentWait {
  readonly #api: ControlPlaneApi;

  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  async untilDeployed(deploymentId: string, options: WaitOptions = {}): Promise<Deployed> {
    const name = 'deployments.waitUntilDeployed';
    const wait = new RevisionWait(this.#api, checkedWait(name, options, { revisionId: REVISION_ID }));
    const { revisionId } = options;
    const { ids } =
      revisionId === undefined
        ? callOf({ ...GET_DEPLOYMENT, name }, { ids: [deploymentId] })
        : callOf({ ...GET_REVISION, name }, { ids: [deploymentId, revisionId] });
    return traced(name, ids, () => wait.deployed(deploymentId, revisionId));
  }

  async created(call: PreparedCall, options: Waited = {}): Promise<Deployed> {
    const name = 'deployments.createAndWait';
    const wait = new RevisionWait(this.#api, checkedWait(name, options));
    return traced(name, { name: (call.body as { name: string }).name }, async () => {
      const answer = await this.#api.traced<Deployment>({ ...call, options: wait.callOptions });
      const { id, latest_revision_id } = answer.data;
      if (typeof id !== 'string') throw this.#api.api.invalidAnswer(call, answer, 'has no id');
      return wait.responded().deployed(id, latest_revision_id);
    });
  }

  async updated(
    deploymentId: string,
    patch: DeploymentPatch,
    call: PreparedCall,
    options: Waited = {},
  ): Promise<Updated> {
    const name = 'deployments.updateAndWait';
    const wait = new RevisionWait(this.#api, checkedWait(name, options));
    return traced(name, call.ids, async () => {
      // The revision before the update shows whether the update created another.
      const before = createsRevision(patch) ? await this.#revisionBefore(deploymentId, wait.callOptions) : undefined;
      const deployment = await this.#api.traced<Deployment>({ ...call, options: wait.callOptions });
      if (before === undefined) return { deployment: deployment.data, revision: undefined };
      wait.responded();
      const isChanged = (deployment.data.latest_revision_id ?? null) !== before;
      const changed = isChanged ? deployment.data : await wait.changed(deploymentId, before);
      if (changed === undefined) return { deployment: deployment.data, revision: undefined };
      return wait.responded().deployed(deploymentId, changed.latest_revision_id);
    });
  }

  async redeployed(deploymentId: string, revisionId: string, options: Waited = {}): Promise<Deployed> {
    const name = 'deployments.redeployAndWait';
    const wait = new RevisionWait(this.#api, checkedWait(name, options));
    const call = callOf(REVISIONS.redeploy, { ids: [deploymentId, revisionId] });
    return traced(name, call.ids, async () => {
      const { data } = await this.#api.traced<Deployment>({ ...call, options: wait.callOptions });
      return wait.responded().deployed(deploymentId, data.latest_revision_id);
    });
  }

  async #revisionBefore(deploymentId: string, options: CallOptions): Promise<string | null> {
    const { data } = await this.#api.send<Deployment>(callOf(GET_DEPLOYMENT, { ids: [deploymentId], options }));
    return data.latest_revision_id ?? null;
  }
}

const GET_DEPLOYMENT: Endpoint = {
  name: 'deployments.waitUntilDeployed',
  method: 'GET',
  path: '/v2/deployments/{deployment_id:uuid}',
};
const GET_REVISION: Endpoint = { ...GET_DEPLOYMENT, path: `${GET_DEPLOYMENT.path}/revisions/{revision_id:uuid}` };

/** Polls one revision of a deployment until it is deployed, fails or times out. */
class RevisionWait {
  readonly #api: ControlPlaneApi;
  readonly #options: WaitOptions;
  readonly #timeoutMs: number;
  readonly #startedMs: number = monotonicNowMs();
  #deploymentId = '';
  #revisionId: string | undefined;
  #revision: Revision | undefined;
  /** When the awaited revision became the latest. */
  #newSinceMs: number = this.#startedMs;
  /** Whether the service has responded. Before that, a failure means that the address is wrong. */
  #isReached = false;
  /** The later revision that was reported to `onSuperseded`. */
  #reportedLatest: string | undefined;
  #retryAfterMs = 0;
  #lastError: unknown;

  constructor(api: ControlPlaneApi, options: WaitOptions) {
    this.#api = api;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  /** Options of a call that is a part of the wait. */
  get callOptions(): CallOptions {
    const { signal, headers } = this.#options;
    return { signal, headers, timeoutMs: Math.max(1, Math.ceil(Math.min(this.#api.api.timeoutMs, this.#leftMs))) };
  }

  /** The service has responded to a request that changes the deployment. */
  responded(): this {
    this.#isReached = true;
    this.#newSinceMs = monotonicNowMs();
    return this;
  }

  async deployed(deploymentId: string, revisionId: string | null | undefined): Promise<Deployed> {
    this.#deploymentId = deploymentId;
    this.#revisionId = revisionId ?? undefined;
    return this.#until(() => this.#poll());
  }

  /** Returns the deployment when its latest revision differs from `before`, or undefined if it stays the same. */
  async changed(deploymentId: string, before: string | null): Promise<Deployment | undefined> {
    this.#deploymentId = deploymentId;
    const { deployment } = await this.#until(async () => {
      const deployment = await this.#getDeployment();
      if ((deployment.latest_revision_id ?? null) !== before) return { deployment };
      return this.#isEarly ? undefined : { deployment: undefined };
    });
    return deployment;
  }

  get #leftMs(): number {
    return this.#timeoutMs - (monotonicNowMs() - this.#startedMs);
  }

  get #isEarly(): boolean {
    return monotonicNowMs() - this.#newSinceMs < GRACE_MS;
  }

  /** Polls until `poll` returns a result. A failure that may be temporary does not end the wait. */
  async #until<Result>(poll: () => Promise<Result | undefined>): Promise<Result> {
    for (let polls = 0; ; polls++) {
      this.#retryAfterMs = 0;
      try {
        const result = await poll();
        if (result !== undefined) return result;
      } catch (thrown) {
        this.#options.signal?.throwIfAborted();
        if (!this.#isTemporary(thrown)) throw thrown;
        // A timeout of the last poll says less than an earlier error.
        if (!(thrown instanceof TimeoutError) || this.#lastError === undefined) this.#lastError = thrown;
      }
      await this.#pause(Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 1.5 ** Math.min(polls, 30)));
    }
  }

  async #poll(): Promise<Deployed | undefined> {
    this.#revisionId ??= (await this.#getDeployment()).latest_revision_id ?? undefined;
    if (this.#revisionId === undefined) return undefined;
    const revision = await this.#get<Revision>(GET_REVISION, this.#revisionId);
    const isChange = revision.status !== this.#revision?.status;
    this.#revision = revision;
    if (isChange) await this.#options.onStatus?.(revision);
    if (FAILED.has(revision.status)) throw this.#failed(revision);
    const deployment = await this.#getDeployment();
    if (revision.status === 'DEPLOYED') return { deployment, revision };
    const isFollowed = this.#follows(deployment.latest_revision_id);
    if (!isFollowed && GIVEN_UP.has(revision.status)) throw this.#failed(revision);
    return undefined;
  }

  /** Returns whether the wait continues with a later revision. */
  #follows(latestRevisionId: string | null | undefined): boolean {
    const revisionId = this.#revisionId;
    if (revisionId === undefined || latestRevisionId === null || latestRevisionId === undefined) return false;
    if (latestRevisionId === revisionId || latestRevisionId === this.#reportedLatest) return false;
    this.#reportedLatest = latestRevisionId;
    const decision = this.#options.onSuperseded?.({ revisionId, latestRevisionId });
    if (decision === 'stay') return false;
    if (decision === undefined)
      throw this.#error('RUNSPAN_REVISION_SUPERSEDED', `was superseded by ${latestRevisionId}`);
    if (decision !== 'follow') {
      ignoreRejection(decision);
      const message = `Expected \`onSuperseded\` to return 'follow', 'stay' or undefined, got ${shown(decision)}`;
      throw new RunspanError('RUNSPAN_INVALID_OPTION', message);
    }
    this.#revisionId = latestRevisionId;
    this.#revision = undefined;
    this.#newSinceMs = monotonicNowMs();
    return true;
  }

  #isTemporary(thrown: unknown): boolean {
    if (thrown instanceof TimeoutError) return true;
    // A proxy that restarts responds with a web page. A wrong address does so too, but always.
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
    const seen = this.#revision === undefined ? 'it was not seen' : `it is ${this.#revision.status}`;
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
    const timeoutMs = Math.max(1, Math.ceil(Math.min(POLL_TIMEOUT_MS, this.#leftMs)));
    // The next poll is the retry.
    const options = { ...this.callOptions, timeoutMs, maxRetries: 0 };
    const { data } = await this.#api.send<Resource>({ ...call, options });
    this.#isReached = true;
    this.#lastError = undefined;
    return data;
  }

  #failed(revision: Revision): RevisionError {
    const reason = reasonOf(revision);
    const problem = `will not be deployed: it is ${revision.status}${reason && `: ${reason}`}`;
    return this.#error('RUNSPAN_REVISION_FAILED', problem);
  }

  #error(code: RevisionErrorCode, problem: string, options?: ErrorOptions): RevisionError {
    const facts = { deploymentId: this.#deploymentId, revisionId: this.#revisionId, revision: this.#revision };
    return new RevisionError(code, facts, problem, options);
  }
}

/** Returns the reason of a revision's status, or an empty string. The interface does not specify its field. */
function reasonOf({ status_message, message, error }: Revision): string {
  const reason = [status_message, message, error].find((text) => typeof text === 'string' && text.trim() !== '');
  return typeof reason === 'string' ? cut(reason.trim(), 2 * DETAIL_MAX) : '';
}

function traced<Result extends Updated>(
  name: string,
  inputs: Record<string, unknown>,
  call: () => Promise<Result>,
): Promise<Result> {
  const outputs = (result: Result): Record<string, unknown> => withoutSecretValues(result) as Record<string, unknown>;
  return tracedCall({ name, runType: 'tool', inputs: () => inputs, outputs }, call);
}

const REVISION_ID: Check = ['the id of a revision', (value) => typeof value === 'string'];

const waitChecks: Checks<Waited> = {
  signal: callChecks.signal,
  headers: callChecks.headers,
  timeoutMs: callChecks.timeoutMs,
  intervalMs: WHOLE_FROM_1,
  onStatus: FUNCTION,
  onSuperseded: FUNCTION,
};

function checkedWait(name: string, options: unknown, own: Partial<Checks<WaitOptions>> = {}): WaitOptions {
  return checkedOptions<WaitOptions>(`the options of ${name}`, options, {
    ...waitChecks,
    ...own,
  } as Checks<WaitOptions>);
}
