import type { CallOptions } from '../client-options.ts';
import { endpoints, type Table } from '../endpoint.ts';
import type { PageList } from '../page.ts';
import { BODY, required, TEXT } from '../schema.ts';
import type { PageRequest } from './agent-service.ts';
import type { RunRequest, RunSettings } from './run-request.ts';

/** A cron job, which starts runs on a schedule. */
export interface Cron {
  readonly cron_id: string;
  readonly assistant_id: string;
  readonly thread_id: string | null;
  /** Cron expression, for example `0 9 * * 1`. */
  readonly schedule: string;
  readonly timezone?: string | null;
  readonly end_time: string | null;
  readonly enabled?: boolean;
  /** ISO 8601 timestamp. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly user_id?: string | null;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly next_run_date?: string | null;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly [field: string]: unknown;
}

/** The schedule of a cron job. */
export interface CronSchedule {
  /** Cron expression with five fields: minute, hour, day of month, month, day of week. */
  schedule: string;
  /** IANA time zone of the schedule, for example `Europe/Berlin`. @default UTC */
  timezone?: string | null;
  /** Time at which the schedule ends, as an ISO 8601 timestamp. */
  end_time?: string | null;
  /** @default true */
  enabled?: boolean;
}

/** A cron job that creates a new thread for each run. */
export interface CronCreate
  extends CronSchedule,
    Omit<RunSettings, 'command' | 'on_disconnect' | 'feedback_keys' | 'after_seconds'> {
  /** Whether to delete or keep the thread after its run. @default 'delete' */
  on_run_completed?: 'delete' | 'keep';
}

/** A cron job whose runs all use one thread. */
export interface ThreadCronCreate extends Omit<CronCreate, 'on_run_completed'> {
  /** What to do if another run is active on the thread. */
  multitask_strategy?: NonNullable<RunRequest['multitask_strategy']>;
}

/** Fields of a cron job to change. Omitted fields keep their values. */
export type CronUpdate = Partial<Omit<CronCreate, 'assistant_id'>>;

/** Selects cron jobs that match all of the given fields. */
export interface CronFilter {
  assistant_id?: string;
  thread_id?: string;
  enabled?: boolean;
  metadata?: Readonly<Record<string, unknown>>;
}

/** Filter, sort order and returned fields of a search for cron jobs. */
export interface CronSearch extends CronFilter, PageRequest {
  sort_by?: 'cron_id' | 'assistant_id' | 'thread_id' | 'created_at' | 'updated_at' | 'next_run_date';
  sort_order?: 'asc' | 'desc';
  /** Names of the fields to return. */
  select?: readonly string[];
}

/** Calls that manage an agent server's cron jobs. */
export interface Crons {
  create(cron: CronCreate, options?: CallOptions): Promise<Cron>;
  createForThread(threadId: string, cron: ThreadCronCreate, options?: CallOptions): Promise<Cron>;
  search(filter?: CronSearch, options?: CallOptions): PageList<Cron>;
  count(filter?: CronFilter, options?: CallOptions): Promise<number>;
  update(cronId: string, changes: CronUpdate, options?: CallOptions): Promise<Cron>;
  delete(cronId: string, options?: CallOptions): Promise<void>;
}

const CRON = required<CronCreate>({ assistant_id: TEXT, schedule: TEXT });

export const CRONS: Table<Crons> = endpoints('crons', {
  create: ['POST /runs/crons', { body: CRON }],
  createForThread: ['POST /threads/{thread_id}/runs/crons', { body: CRON }],
  search: ['POST /runs/crons/search', { body: BODY, response: 'pages' }],
  count: ['POST /runs/crons/count', { body: BODY, response: 'number', isIdempotent: true }],
  update: ['PATCH /runs/crons/{cron_id}', { body: BODY }],
  delete: ['DELETE /runs/crons/{cron_id}', { response: 'none' }],
});
