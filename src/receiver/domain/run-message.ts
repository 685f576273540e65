import type { Attachment, RunRecord } from '../../run/record.ts';
import type { PayloadField } from './run-view.ts';

/**
 * Validated fields of a run. Ids are in lower case with hyphens. Times are ISO 8601 timestamps in UTC with
 * microseconds.
 */
export type RunFields = Partial<Omit<RunRecord, 'id'>> & {
  /** Whether only keys that are limited to a project have posted the run. Clients cannot set it. */
  limited_key?: true;
};

/**
 * A message that creates or updates a run. If `fields` contains a `dotted_order`, `fields` also contains the matching
 * `trace_id` and `parent_run_id`.
 */
export interface RunOperation {
  readonly kind: 'post' | 'patch';
  readonly id: string;
  readonly fields: RunFields;
  /** JSON text of the payloads in `fields`, so that the store does not have to serialize them. */
  readonly texts?: Readonly<Partial<Record<PayloadField, string>>>;
  readonly attachments: readonly Attachment[];
}
