import { cut, messageOf } from '../../base/text.ts';
import { type Checks, checkedOptions, FUNCTION, WHOLE_FROM_1 } from '../../config/checker.ts';
import { isTransient, retryAfterMs } from '../../http/retry.ts';
import { monotonicNowMs, wallNowMs } from '../../platform/timers.ts';
import { type CallOptions, callChecks } from '../client-options.ts';
import { type Arguments, type Endpoint, type PreparedCall, preparedCall } from '../endpoint.ts';
import { ApiError, ConnectionError, DETAIL_MAX, InvalidResponseError, TimeoutError } from '../errors.ts';
import { tracedCall } from '../tracing.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import { createsRevision, type Deployment, type DeploymentPatch } from './deployment.ts';
import { REVISIONS, type Revision, RevisionError, type RevisionFacts } from './revision.ts';
import { withoutSecretValues } from './secret-values.ts';

/** Options for waiting until a revision is deployed. */
export interface WaitOptions extends Pick<CallOptions, 'signal' | 'headers'> {
  /** Id of the revision to wait for. @default the latest revision */
  revisionId?: string;
  /** Timeout for the whole wait, including the first request, in milliseconds. @default 900_000 */
  timeoutMs?: number;
  /** Delay between two polls, in milliseconds. By default, the delay grows from 1 s to 5 s. */
  intervalMs?: number;
  /**
   * Called with the first response and after each change of the revision's status. If `onStatus` returns a promise, the
   * wait awaits the promise. If `onStatus` throws an error, the wait ends.
   */
  onStatus?: (revision: Revision) => void;
}

/** A deployment and its deployed revision. The deployment's URL is `deployment.source_config.custom_url`. */
export interface Deployed {
  readonly deployment: Deployment;
  readonly revision: Revision;
}

/** An updated deployment. `revision` is undefined if the update changes no field that creates a revision. */
export interface Updated {
  readonly deployment: Deployment;
  readonly revision: Revision | undefined;
}

const TIMEOUT_MS = 15 * 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;

/** Time during which a service may respond with 404 to a resource that was just created. */
const GRACE_MS = 5_000;

const FAILED: ReadonlySet<string> = new Set(['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED']);

/** Statuses of a revision that may have been replaced by a later revision. */
const GIVEN_UP: ReadonlySet<string> = new Set(['SKIPPED', 'INTERRUPTED']);

const GET_REVISION: Endpoint = { ...REVISIONS.get, name: 'deployments.waitUntilDeployed' };
const GET_DEPLOYMENT: Endpoint = { ...GET_REVISION, path: '/v2/deployments/{deployment_id:uuid}' };

const CHECKS: Checks<Omit<WaitOptions, 'revisionId'>> = {
  signal: callChecks.signal,
  headers: callChecks.headers,
  timeoutMs: callChecks.timeoutMs,
  intervalMs: WHOLE_FROM_1,
  onStatus: FUNCTION,
};

export async function waitUntilDeployed(
  api: ControlPlaneApi,
  deploymentId: string,
  { revisionId, ...options }: WaitOptions = {},
): Promise<Deployed> {
  const endpoint = revisionId === undefined ? GET_DEPLOYMENT : GET_REVISION;
  const { name, ids } = preparedCall(endpoint, { ids: [deploymentId, revisionId ?? ''] });
  return waiting(api, name, ids, options, async (wait) =>
    wait.until(await wait.deployment(deploymentId), { revisionId }),
  );
}

/** Sends a request that changes a deployment, and waits for the revision that the request creates. */
export async function changeAndWait<Result extends Updated>(
  api: ControlPlaneApi,
  method: string,
  endpoint: Endpoint,
  args: Arguments,
  options?: WaitOptions,
): Promise<Result> {
  const call = preparedCall(endpoint, args);
  return waiting<Result>(api, `deployments.${method}`, call.ids, options, async (wait) => {
    const { deployment_id: id } = call.ids;
    const isPatch = call.method === 'PATCH';
    const isNew = !isPatch || createsRevision(call.body as DeploymentPatch);
    // The response to a PATCH may still contain the earlier revision's id. A redeployed revision may keep its id.
    const old = isNew && isPatch && id !== undefined ? (await wait.deployment(id)).latest_revision_id : undefined;
    const response = await api.traced<Deployment>({ ...call, options: wait.callOptions() });
    const { data: deployment } = response;
    if (!isNew) return { deployment, revision: undefined };
    if (typeof deployment.id !== 'string') throw api.api.invalidResponse(call, response, 'has no id');
    return wait.until(deployment, { old });
  });
}

/** Inside a traced function, the whole wait is recorded as one child run, without the polls. */
function waiting<Result extends Updated>(
  api: ControlPlaneApi,
  name: string,
  ids: PreparedCall['ids'],
  options: WaitOptions = {},
  wait: (wait: RevisionWait) => Promise<Updated>,
): Promise<Result> {
  const revisionWait = new RevisionWait(api, checkedOptions(`the options of ${name}`, options, CHECKS));
  const outputs = (result: Result): Record<string, unknown> => withoutSecretValues(result) as Record<string, unknown>;
  const run = { name, runType: 'tool', inputs: () => ids, outputs } as const;
  return tracedCall(run, () => wait(revisionWait) as Promise<Result>);
}

/** Which revision of a deployment to wait for: a given one, a later one than `old`, or by default the latest one. */
interface Awaited {
  readonly revisionId?: string | undefined;
  readonly old?: string | null | undefined;
}

/** Polls one revision of a deployment until it is deployed, fails or times out. */
class RevisionWait {
  readonly #api: ControlPlaneApi;
  readonly #options: WaitOptions;
  readonly #timeoutMs: number;
  readonly #startedMs: number = monotonicNowMs();

  constructor(api: ControlPlaneApi, options: WaitOptions) {
    this.#api = api;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  callOptions(): CallOptions {
    const { signal, headers } = this.#options;
    return { signal, headers, timeoutMs: Math.ceil(Math.max(1, Math.min(this.#api.api.timeoutMs, this.#leftMs))) };
  }

  async deployment(id: string, maxRetries?: number): Promise<Deployment> {
    const call = preparedCall(GET_DEPLOYMENT, { ids: [id], options: { ...this.callOptions(), maxRetries } });
    return (await this.#api.send<Deployment>(call)).data;
  }

  /** Polls until the revision is deployed. Temporary failures do not end the wait. */
  async until({ id, latest_revision_id }: Deployment, { revisionId, old }: Awaited): Promise<Deployed> {
    const { signal, intervalMs } = this.#options;
    const latest = latest_revision_id === old ? undefined : (latest_revision_id ?? undefined);
    const known = revisionId ?? latest;
    const facts: Facts = { deploymentId: id, revisionId: known, revision: undefined, sinceMs: monotonicNowMs() };
    let cause: unknown;
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(LONGEST_DELAY_MS, delayMs * 1.5)) {
      let pauseMs = intervalMs ?? delayMs;
      try {
        const result = await this.#poll(facts, old);
        if (result !== undefined) return result;
        cause = undefined;
      } catch (thrown) {
        const isEarly = facts.revision === undefined && monotonicNowMs() - facts.sinceMs < GRACE_MS;
        if (!isTemporary(thrown, isEarly)) throw thrown;
        // Timers fire up to 2 ms early. A poll that fails because the wait has ended says nothing about the service.
        if (this.#leftMs > 2) cause = thrown;
        if (thrown instanceof ApiError) pauseMs = Math.max(pauseMs, retryAfterMs(thrown.headers, wallNowMs()) ?? 0);
      }
      // Read before the pause, because the pause may end early.
      const leftMs = this.#leftMs;
      await this.#api.api.wait(Math.min(pauseMs, leftMs), signal);
      if (pauseMs >= leftMs) throw this.#timedOut(facts, cause);
    }
  }

  async #poll(facts: Facts, old: Awaited['old']): Promise<Deployed | undefined> {
    const { deploymentId, revisionId } = facts;
    if (revisionId === undefined) {
      const { latest_revision_id: latest } = await this.deployment(deploymentId, 0);
      if (latest && latest !== old) Object.assign(facts, { revisionId: latest, sinceMs: monotonicNowMs() });
      return undefined;
    }
    const options = { ...this.callOptions(), maxRetries: 0 };
    const call = preparedCall(GET_REVISION, { ids: [deploymentId, revisionId], options });
    const { data: revision } = await this.#api.send<Revision>(call);
    const isChange = revision.status !== facts.revision?.status;
    facts.revision = revision;
    if (isChange) await this.#options.onStatus?.(revision);
    if (FAILED.has(revision.status)) throw failure(facts, revision);
    const deployment = await this.deployment(deploymentId, 0);
    if (revision.status === 'DEPLOYED') return { deployment, revision };
    const { latest_revision_id: latest } = deployment;
    if (latest && latest !== revisionId)
      throw new RevisionError('RUNSPAN_REVISION_SUPERSEDED', facts, `was superseded by ${latest}`);
    if (GIVEN_UP.has(revision.status)) throw failure(facts, revision);
    return undefined;
  }

  #timedOut(facts: Facts, cause: unknown): RevisionError {
    const reason = cause === undefined ? '' : `; the last poll failed: ${messageOf(cause)}`;
    const status = `its status is ${facts.revision?.status ?? 'unknown'}`;
    const problem = `was not deployed within ${this.#timeoutMs} ms; ${status}${reason}`;
    return new RevisionError('RUNSPAN_TIMEOUT', facts, problem, cause === undefined ? {} : { cause });
  }

  get #leftMs(): number {
    return this.#timeoutMs - (monotonicNowMs() - this.#startedMs);
  }
}

function isTemporary(thrown: unknown, isEarly: boolean): boolean {
  if (thrown instanceof ApiError) return thrown.status === 404 ? isEarly : isTransient(thrown.status);
  // A web page may come from a proxy that restarts.
  return [TimeoutError, ConnectionError, InvalidResponseError].some((kind) => thrown instanceof kind);
}

type Facts = { -readonly [Key in keyof RevisionFacts]: RevisionFacts[Key] } & {
  /** When the id became known. Before, when the wait began to ask for it. */
  sinceMs: number;
};

/** The API does not specify which field contains the reason of a failure. */
function failure(facts: Facts, { status, status_message, message, error }: Revision): RevisionError {
  const reason = [status_message, message, error].find((text) => typeof text === 'string' && text.trim() !== '');
  const shown = typeof reason === 'string' ? `: ${cut(reason.trim(), 2 * DETAIL_MAX)}` : '';
  return new RevisionError('RUNSPAN_REVISION_FAILED', facts, `will not be deployed: its status is ${status}${shown}`);
}
