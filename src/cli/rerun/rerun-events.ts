import type { Fields } from '../../payload/fields.ts';

/** What the body of a request to rerun a call contains. */
export interface RerunChanges {
  /** Replaces the recorded request. */
  readonly request?: Fields;
  /** Values for fields of the request, by path, for example `generationConfig.temperature`. */
  readonly set?: Fields;
  readonly samples?: number;
}

/** A line of the response. A line with `run_id` is the last one of its sample. */
export interface RerunEvent {
  /** From 0. */
  readonly sample: number;
  readonly text?: string;
  readonly run_id?: string | undefined;
  readonly trace_id?: string;
  readonly error?: string | undefined;
}

export const SAMPLES_MAX = 10;
