import { RunspanError } from '../../base/errors.ts';
import { shareInstances } from '../../base/shared.ts';
import { type Check, TRUE_OR_FALSE } from '../../config/checker.ts';
import type { CallOptions } from '../client-options.ts';
import { endpoints, type Table } from '../endpoint.ts';
import { hide } from '../errors.ts';
import type { PageList } from '../page.ts';
import { LIST_OPTIONS, type ListOptions } from './control-plane-api.ts';
import type { Deployment, DeploymentSource, SourceRevisionConfig } from './deployment.ts';

/** Status of a revision. The service may send other values. */
export type RevisionStatus =
  | 'CREATING'
  | 'QUEUED'
  | 'AWAITING_BUILD'
  | 'BUILDING'
  | 'AWAITING_DEPLOY'
  | 'DEPLOYING'
  | 'DEPLOYED'
  | 'CREATE_FAILED'
  | 'BUILD_FAILED'
  | 'DEPLOY_FAILED'
  | 'SKIPPED'
  | 'INTERRUPTED'
  | 'UNKNOWN'
  | (string & {});

/** A revision, as returned by the service, including unknown fields. */
export interface Revision {
  id: string;
  /** ISO 8601 timestamp. */
  created_at?: string;
  /** ISO 8601 timestamp. */
  updated_at?: string;
  status: RevisionStatus;
  source?: DeploymentSource | (string & {});
  source_revision_config: SourceRevisionConfig;
  readonly [field: string]: unknown;
}

/** Selects the revisions to list. */
export interface ListRevisionsOptions extends ListOptions {
  /** Returns only revisions with one of these statuses. */
  status?: readonly RevisionStatus[];
  /** Filters revisions by the service's field `remote_reconciled`. */
  remoteReconciled?: boolean;
}

/** Calls for the endpoints under `/v2/deployments/{deployment_id}/revisions`. */
export interface Revisions {
  /** Lists the deployment's revisions, newest first. */
  list(deploymentId: string, options?: ListRevisionsOptions): PageList<Revision>;
  get(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Revision>;
  /** Deploys a revision again. In the returned deployment, `latest_revision_id` is the id of the new revision. */
  redeploy(deploymentId: string, revisionId: string, options?: CallOptions): Promise<Deployment>;
}

const STATUSES: Check = [
  'a list of statuses',
  (value) => Array.isArray(value) && value.every((status) => typeof status === 'string' && /^\w+$/.test(status)),
];

export const REVISIONS: Table<Revisions> = endpoints('revisions', {
  list: [
    'GET /v2/deployments/{deployment_id:uuid}/revisions',
    {
      response: 'pages',
      options: LIST_OPTIONS,
      query: { status: [STATUSES, (statuses: string[]) => statuses.join()], remoteReconciled: [TRUE_OR_FALSE] },
    },
  ],
  get: ['GET /v2/deployments/{deployment_id:uuid}/revisions/{revision_id:uuid}'],
  redeploy: ['POST /v2/deployments/{deployment_id:uuid}/revisions/{revision_id:uuid}/redeploy'],
});

/** State of a revision at the end of a wait. */
export interface RevisionFacts {
  readonly deploymentId: string;
  readonly revisionId: string | undefined;
  /** The revision, as last returned by the service. */
  readonly revision: Revision | undefined;
}

/** Possible values of a RevisionError's `code`. */
export type RevisionErrorCode = 'RUNSPAN_REVISION_FAILED' | 'RUNSPAN_REVISION_SUPERSEDED' | 'RUNSPAN_TIMEOUT';

/**
 * Thrown when the awaited revision is not deployed. With the code `RUNSPAN_REVISION_FAILED`, the revision failed, was
 * skipped or was interrupted. With `RUNSPAN_REVISION_SUPERSEDED`, a later revision replaced the awaited revision. With
 * `RUNSPAN_TIMEOUT`, the wait timed out and the revision may still be deployed.
 */
export class RevisionError extends RunspanError {
  override readonly name: string = 'RevisionError';
  declare readonly code: RevisionErrorCode;
  readonly deploymentId: string;
  readonly revisionId: string | undefined;
  /** Last known status of the revision, or undefined if the service never returned the revision. */
  readonly status: RevisionStatus | undefined;
  /** The revision, as last returned by the service. */
  readonly revision: Revision | undefined;

  constructor(code: RevisionErrorCode, facts: RevisionFacts, problem: string, options?: ErrorOptions) {
    const { deploymentId, revisionId, revision } = facts;
    super(code, `Revision ${revisionId ?? '(none yet)'} of deployment ${deploymentId} ${problem}`, options);
    this.deploymentId = deploymentId;
    this.revisionId = revisionId;
    this.status = revision?.status;
    this.revision = revision;
    hide(this, ['revision']);
  }
}

shareInstances({ RevisionError });
