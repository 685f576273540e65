import type { DeploymentSource, SourceRevisionConfig } from './deployment.ts';

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

/** A revision as the service gives it. Fields that are not named here are kept. */
export interface Revision {
  id: string;
  /** ISO 8601. */
  created_at?: string;
  /** ISO 8601. */
  updated_at?: string;
  status: RevisionStatus;
  source?: DeploymentSource | (string & {});
  source_revision_config: SourceRevisionConfig;
  readonly [field: string]: unknown;
}
