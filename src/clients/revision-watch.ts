import { monotonicNowMs, wallNowMs } from '../base/clock.ts';
import { RunspanError } from '../base/errors.ts';
import { ignoreRejection } from '../base/guard.ts';
import { cut, messageOf, shown } from '../base/text.ts';
import { isTransient, parseRetryAfter } from '../http/retry-policy.ts';
import { ApiError, ConnectionError, InvalidAnswerError, TimeoutError } from './api-error.ts';
import { pathOf } from './call.ts';
import type { ControlPlaneApi } from './control-plane-api.ts';
import type { Deployment } from './deployment.ts';
import type { Deployed, WaitOptions } from './deployment-wait.ts';
import type { Revision } from './revision.ts';
import { RevisionError } from './revision-error.ts';

/** For a whole wait. */
export const WAIT_TIMEOUT_MS: number = 15 * 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 5_000;

/** For a single look. */
const LOOK_TIMEOUT_MS = 30_000;

/** What has just been made may not be known everywhere: for so long a 404 says nothing. */
const GRACE_MS = 5_000;

const FAILED: ReadonlySet<string> = new Set(['CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED']);

/** Those to which a later revision may be the reason. */
const GIVEN_UP: ReadonlySet<string> = new Set(['SKIPPED', 'INTERRUPTED']);

/** Milliseconds until the next look, of which there have been so many. */
export function lookDelayMs(looks: number): number {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 1.5 ** Math.min(looks - 1, 30));
}

/** What is waited for. */
export interface WatchTarget {
  readonly deploymentId: string;
  /** Undefined for the latest. */
  readonly revisionId: string | undefined;
  /** Whether the service has answered before: an address that is wrong is no service that is away for a while. */
  readonly isReached: boolean;
  /** On the monotonic clock, where the wait began with a call before; by default now. */
  readonly startedMs?: number;
  readonly graceMs?: number;
}

/** A wait for one revision of a deployment. */
export class RevisionWatch {
  readonly #api: ControlPlaneApi;
  readonly #deploymentId: string;
  readonly #options: WaitOptions;
  readonly #timeoutMs: number;
  readonly #graceMs: number;
  readonly #startedMs: number;
  /** When the service told of the revision. */
  #newSinceMs: number = monotonicNowMs();
  #isReached: boolean;
  #revisionId: string | undefined;
  #revision: Revision | undefined;
  /** A later revision because of which the wait does not end. */
  #toldLatest: string | undefined;
  #retryAfterMs = 0;
  #lastError: unknown;

  constructor(api: ControlPlaneApi, target: WatchTarget, options: WaitOptions) {
    this.#api = api;
    this.#deploymentId = target.deploymentId;
    this.#revisionId = target.revisionId;
    this.#isReached = target.isReached;
    this.#graceMs = target.graceMs ?? GRACE_MS;
    this.#startedMs = target.startedMs ?? this.#newSinceMs;
    this.#timeoutMs = options.timeoutMs ?? WAIT_TIMEOUT_MS;
    this.#options = options;
  }

  async deployed(): Promise<Deployed> {
    for (let looks = 1; ; looks++) {
      const deployed = await this.#tolerant(() => this.#look());
      if (deployed !== undefined) return deployed;
      await this.#pause(looks);
    }
  }

  /** The deployment once its latest revision is another than the one that is given, or undefined where it stays the same for a while. */
  async another(revisionId: string | null): Promise<Deployment | undefined> {
    for (let looks = 1; ; looks++) {
      const deployment = await this.#tolerant(() => this.#deployment());
      if (deployment !== undefined && (deployment.latest_revision_id ?? null) !== revisionId) return deployment;
      if (deployment !== undefined && !this.#isEarly) return undefined;
      await this.#pause(looks);
    }
  }

  get #leftMs(): number {
    return this.#timeoutMs - (monotonicNowMs() - this.#startedMs);
  }

  get #isEarly(): boolean {
    return monotonicNowMs() - this.#newSinceMs < this.#graceMs;
  }

  async #look(): Promise<Deployed | undefined> {
    this.#revisionId ??= (await this.#deployment()).latest_revision_id ?? undefined;
    if (this.#revisionId === undefined) return undefined;
    const revision = await this.#get<Revision>('revisions', this.#revisionId);
    const isChange = revision.status !== this.#revision?.status;
    this.#revision = revision;
    if (isChange) await this.#options.onStatus?.(revision);
    if (FAILED.has(revision.status)) throw this.#failed(revision.status);
    const deployment = await this.#deployment();
    if (revision.status === 'DEPLOYED') return { deployment, revision };
    const isFollowed = this.#isFollowing(deployment.latest_revision_id);
    if (!isFollowed && GIVEN_UP.has(revision.status)) throw this.#failed(revision.status);
    return undefined;
  }

  /** Whether the wait goes on with a later revision. */
  #isFollowing(latestRevisionId: string | null): boolean {
    const revisionId = this.#revisionId;
    if (revisionId === undefined || latestRevisionId === null || latestRevisionId === undefined) return false;
    if (latestRevisionId === revisionId || latestRevisionId === this.#toldLatest) return false;
    this.#toldLatest = latestRevisionId;
    const decision = this.#options.onSuperseded?.({ revisionId, latestRevisionId });
    if (decision === 'stay') return false;
    if (decision !== undefined && decision !== 'follow') {
      const got = shown(decision);
      ignoreRejection(decision);
      throw new RunspanError(
        'RUNSPAN_INVALID_OPTION',
        `Expected \`onSuperseded\` to answer 'follow', 'stay' or undefined, at once, got ${got}`,
      );
    }
    if (decision === undefined)
      throw this.#error('RUNSPAN_REVISION_SUPERSEDED', `was superseded by ${latestRevisionId}`);
    this.#revisionId = latestRevisionId;
    this.#revision = undefined;
    this.#newSinceMs = monotonicNowMs();
    return true;
  }

  /** What a look finds; undefined where it failed as it may not the next time. */
  async #tolerant<Found>(look: () => Promise<Found | undefined>): Promise<Found | undefined> {
    this.#retryAfterMs = 0;
    try {
      return await look();
    } catch (thrown) {
      this.#options.signal?.throwIfAborted();
      if (!this.#isPassing(thrown)) throw thrown;
      // That the last look had no time left says less than what was before.
      if (!(thrown instanceof TimeoutError)) this.#lastError = thrown;
      else this.#lastError ??= thrown;
      return undefined;
    }
  }

  #isPassing(thrown: unknown): boolean {
    if (thrown instanceof TimeoutError) return true;
    // A web page of a proxy that restarts is as good as a 5xx, but that of another service stays.
    if (thrown instanceof InvalidAnswerError) return this.#isReached;
    if (thrown instanceof ConnectionError) return this.#isReached || this.#isEarly;
    if (!(thrown instanceof ApiError)) return false;
    const { 'retry-after': after, date } = thrown.headers;
    this.#retryAfterMs = parseRetryAfter(textOf(after), wallNowMs(), textOf(date)) ?? 0;
    if (thrown.status === 404) return this.#revision === undefined && this.#isEarly;
    return isTransient(thrown.status);
  }

  async #pause(looks: number): Promise<void> {
    const delayMs = Math.max(this.#options.intervalMs ?? lookDelayMs(looks), this.#retryAfterMs);
    if (this.#leftMs > 0) await this.#api.pause(Math.min(delayMs, this.#leftMs), this.#options.signal);
    if (this.#leftMs > 0) return;
    const seen = this.#revision === undefined ? 'it was not seen' : `it is ${this.#revision.status}`;
    const cause = this.#lastError;
    const isOutOfTime = cause instanceof TimeoutError && this.#revision !== undefined;
    const reason = cause === undefined || isOutOfTime ? '' : `; the last look failed: ${messageOf(cause)}`;
    const problem = `was not deployed within ${this.#timeoutMs} ms; ${seen}${reason}`;
    throw this.#error('RUNSPAN_TIMEOUT', problem, cause === undefined ? {} : { cause });
  }

  #deployment(): Promise<Deployment> {
    return this.#get();
  }

  async #get<Resource>(...segments: string[]): Promise<Resource> {
    const { signal, headers } = this.#options;
    const { data } = await this.#api.answer<Resource>({
      name: 'deployments.waitUntilDeployed',
      method: 'GET',
      path: pathOf('v2', 'deployments', this.#deploymentId, ...segments),
      answer: 'object',
      options: {
        ...(signal && { signal }),
        ...(headers && { headers }),
        timeoutMs: Math.max(1, Math.ceil(Math.min(LOOK_TIMEOUT_MS, this.#leftMs))),
        // The next look is the next attempt.
        maxRetries: 0,
      },
    });
    this.#isReached = true;
    this.#lastError = undefined;
    return data;
  }

  #failed(status: string): RevisionError {
    const reason = reasonOf(this.#revision);
    return this.#error('RUNSPAN_REVISION_FAILED', `will not be deployed: it is ${status}${reason && `: ${reason}`}`);
  }

  #error(code: ConstructorParameters<typeof RevisionError>[0], problem: string, options?: ErrorOptions): RevisionError {
    const facts = { deploymentId: this.#deploymentId, revisionId: this.#revisionId, revision: this.#revision };
    return new RevisionError(code, facts, problem, options);
  }
}

/** Fields that services use for the reason. The API does not specify one. */
const REASON_FIELDS = ['status_message', 'message', 'error'];
const REASON_LENGTH_MAX = 1_000;

/** Returns the reason that the service gives for a revision's status, or an empty string. */
function reasonOf(revision: Revision | undefined): string {
  const texts = REASON_FIELDS.map((field) => revision?.[field]);
  const reason = texts.find((text) => typeof text === 'string' && text.trim() !== '');
  return typeof reason === 'string' ? cut(reason.trim(), REASON_LENGTH_MAX) : '';
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
