/** Statuses of runs; a later server may have others. */
export type RunStatus = 'pending' | 'running' | 'error' | 'success' | 'timeout' | 'interrupted' | (string & {});

/** A run of an assistant. */
export interface AgentRun {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: RunStatus;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly multitask_strategy?: 'reject' | 'rollback' | 'interrupt' | 'enqueue' | (string & {}) | null;
  readonly [field: string]: unknown;
}
