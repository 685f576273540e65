import { RunspanError } from '../base/errors.ts';
import type { Revision, RevisionStatus } from './revision.ts';

/** What is known of a revision when the wait for it ends. */
export interface RevisionFacts {
  readonly deploymentId: string;
  readonly revisionId: string | undefined;
  /** As it was seen last. */
  readonly revision: Revision | undefined;
}

/** Codes of a RevisionError. */
export type RevisionErrorCode = 'RUNSPAN_REVISION_FAILED' | 'RUNSPAN_REVISION_SUPERSEDED' | 'RUNSPAN_TIMEOUT';

/**
 * A revision that was waited for is not deployed: it failed, was skipped or interrupted (`RUNSPAN_REVISION_FAILED`), a later one has taken
 * its place (`RUNSPAN_REVISION_SUPERSEDED`), or the time is over (`RUNSPAN_TIMEOUT`) and it may still be.
 */
export class RevisionError extends RunspanError {
  override readonly name: string = 'RevisionError';
  declare readonly code: RevisionErrorCode;
  readonly deploymentId: string;
  readonly revisionId: string | undefined;
  /** As it was seen last; undefined where it was not seen at all. */
  readonly status: RevisionStatus | undefined;
  /** As it was seen last. */
  readonly revision: Revision | undefined;

  constructor(code: RevisionErrorCode, facts: RevisionFacts, problem: string, options?: ErrorOptions) {
    const { deploymentId, revisionId, revision } = facts;
    super(code, `Revision ${revisionId ?? '(none yet)'} of deployment ${deploymentId} ${problem}`, options);
    this.deploymentId = deploymentId;
    this.revisionId = revisionId;
    this.status = revision?.status;
    this.revision = revision;
    Object.defineProperty(this, 'revision', { value: revision, enumerable: false });
  }
}
