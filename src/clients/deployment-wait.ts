import { monotonicNowMs } from '../base/clock.ts';
import { type Checks, checkedOptions, WHOLE_FROM_1 } from '../base/options.ts';
import { pathOf } from './call.ts';
import { type CallOptions, callChecks } from './client-options.ts';
import type { ControlPlaneApi, ControlPlaneCall } from './control-plane-api.ts';
import { createsRevision } from './creates-revision.ts';
import type { Deployment, DeploymentPatch } from './deployment.ts';
import { checkRequest } from './request-check.ts';
import type { Revision } from './revision.ts';
import { RevisionWatch, WAIT_TIMEOUT_MS } from './revision-watch.ts';
import { withoutSecretValues } from './secret-values.ts';
import { tracedCall } from './traced-call.ts';

/** How a deployment is waited for. */
export interface WaitOptions extends Pick<CallOptions, 'signal' | 'headers'> {
  /** By default the latest. */
  revisionId?: string;
  /**
   * Milliseconds for the whole wait, the call that it begins with included.
   *
   * @default 900_000
   */
  timeoutMs?: number;
  /** Milliseconds between two looks. By default 1 s at first, and more by and by, up to 5 s. */
  intervalMs?: number;
  /** Told of the revision when it is seen first, and when its status is another; a promise is awaited. What it throws ends the wait. */
  onStatus?: (revision: Revision) => void;
  /**
   * Asked when a later revision has taken the place of the one that is waited for: whether to wait for that instead (`'follow'`), or
   * for this one all the same (`'stay'`). Otherwise the wait ends with a RevisionError.
   */
  onSuperseded?: (event: SupersededEvent) => 'follow' | 'stay' | undefined;
}

/** A revision whose place another has taken. */
export interface SupersededEvent {
  readonly revisionId: string;
  readonly latestRevisionId: string;
}

/** A deployment with the revision that is deployed. Its address is `deployment.source_config.custom_url`. */
export interface Deployed {
  readonly deployment: Deployment;
  readonly revision: Revision;
}

/** A deployment after an update; `revision` is undefined where that made none. */
export interface Updated {
  readonly deployment: Deployment;
  readonly revision: Revision | undefined;
}

type Waited = Omit<WaitOptions, 'revisionId'>;

/** What waits for revisions. Of a wait within a run the looks are no runs of their own. */
export class DeploymentWait {
  readonly #api: ControlPlaneApi;

  constructor(api: ControlPlaneApi) {
    this.#api = api;
  }

  async untilDeployed(deploymentId: string, options: WaitOptions = {}): Promise<Deployed> {
    const name = 'deployments.waitUntilDeployed';
    const checked = checkedWait(name, options);
    const { revisionId } = checked;
    const ids = { deployment_id: deploymentId, ...(revisionId === undefined ? {} : { revision_id: revisionId }) };
    checkRequest(name, { path: ids });
    const target = { deploymentId, revisionId, isReached: false };
    return traced(name, ids, () => new RevisionWatch(this.#api, target, checked).deployed());
  }

  async created(call: ControlPlaneCall, options: Waited = {}): Promise<Deployed> {
    const name = 'deployments.createAndWait';
    const checked = checkedWait(name, options);
    const startedMs = monotonicNowMs();
    return traced(name, { name: (call.body as { name: string }).name }, async () => {
      const answer = await this.#api.traced<Deployment>({ ...call, options: this.#sentWith(checked, startedMs) });
      const { id, latest_revision_id } = answer.data;
      if (typeof id !== 'string') throw this.#api.invalid(call, answer, 'has no id');
      return this.#watch(id, latest_revision_id, checked, startedMs).deployed();
    });
  }

  async updated(
    deploymentId: string,
    patch: DeploymentPatch,
    call: ControlPlaneCall,
    options: Waited = {},
  ): Promise<Updated> {
    const name = 'deployments.updateAndWait';
    const checked = checkedWait(name, options);
    const startedMs = monotonicNowMs();
    return traced(name, { deployment_id: deploymentId }, async () => {
      const before = createsRevision(patch) ? await this.#revisionBefore(deploymentId, checked, startedMs) : undefined;
      const options = this.#sentWith(checked, startedMs);
      const deployment = await this.#api.call<Deployment>({ ...call, options });
      if (before === undefined) return { deployment, revision: undefined };
      const latest = deployment.latest_revision_id ?? null;
      // The answer may still name the one before.
      const changed =
        latest === before ? await this.#watch(deploymentId, undefined, checked, startedMs).another(before) : deployment;
      if (changed === undefined) return { deployment, revision: undefined };
      return this.#watch(deploymentId, changed.latest_revision_id, checked, startedMs).deployed();
    });
  }

  async redeployed(deploymentId: string, revisionId: string, options: Waited = {}): Promise<Deployed> {
    const name = 'deployments.redeployAndWait';
    const checked = checkedWait(name, options);
    const told = { deployment_id: deploymentId, revision_id: revisionId };
    checkRequest(name, { path: told });
    const startedMs = monotonicNowMs();
    return traced(name, told, async () => {
      const deployment = await this.#api.call<Deployment>({
        name: 'revisions.redeploy',
        method: 'POST',
        path: pathOf('v2', 'deployments', deploymentId, 'revisions', revisionId, 'redeploy'),
        told,
        answer: 'object',
        options: this.#sentWith(checked, startedMs),
      });
      return this.#watch(deploymentId, deployment.latest_revision_id, checked, startedMs).deployed();
    });
  }

  /** For a revision that the service has just told of. */
  #watch(
    deploymentId: string,
    revisionId: string | null | undefined,
    options: Waited,
    startedMs: number,
  ): RevisionWatch {
    const target = { deploymentId, revisionId: revisionId ?? undefined, isReached: true, startedMs };
    return new RevisionWatch(this.#api, target, options);
  }

  /** Against it one sees whether an update has made another. */
  async #revisionBefore(deploymentId: string, options: Waited, startedMs: number): Promise<string | null> {
    const { data } = await this.#api.answer<Deployment>({
      name: 'deployments.get',
      method: 'GET',
      path: pathOf('v2', 'deployments', deploymentId),
      answer: 'object',
      options: this.#sentWith(options, startedMs),
    });
    return data.latest_revision_id ?? null;
  }

  /** What a call before the wait takes: its own time, or what is left of the whole where that is less. */
  #sentWith({ signal, headers, timeoutMs = WAIT_TIMEOUT_MS }: Waited, startedMs: number): CallOptions {
    const leftMs = Math.ceil(timeoutMs - (monotonicNowMs() - startedMs));
    return {
      ...(signal && { signal }),
      ...(headers && { headers }),
      timeoutMs: Math.max(1, Math.min(this.#api.timeoutMs, leftMs)),
    };
  }
}

function traced<Result extends Updated>(
  name: string,
  inputs: Record<string, unknown>,
  call: () => Promise<Result>,
): Promise<Result> {
  const outputs = (result: Result): Record<string, unknown> => withoutSecretValues(result) as Record<string, unknown>;
  return tracedCall({ name, runType: 'tool', inputs: () => inputs, outputs }, call);
}

function checkedWait(name: string, options: unknown): WaitOptions {
  const { revisionId, ...others } = waitChecks;
  const checks = name === 'deployments.waitUntilDeployed' ? { revisionId, ...others } : others;
  return checkedOptions<WaitOptions>(`the options of ${name}`, options, checks as Checks<WaitOptions>);
}

const waitChecks: Checks<WaitOptions> = {
  signal: callChecks.signal,
  headers: callChecks.headers,
  revisionId: ['the id of a revision', (value) => typeof value === 'string'],
  timeoutMs: callChecks.timeoutMs,
  intervalMs: WHOLE_FROM_1,
  onStatus: ['a function', isFunction],
  onSuperseded: ['a function', isFunction],
};

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}
