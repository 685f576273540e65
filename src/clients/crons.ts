import { type AgentService, agentPath } from './agent-service.ts';
import {
  type BodyRules,
  checkedBody,
  OBJECT,
  oneOf,
  required,
  TEXT,
  TEXTS,
  TIME_OR_NULL,
  TRUTH,
} from './body-rules.ts';
import type { CallOptions } from './client-options.ts';
import type { PageList } from './page.ts';
import { PAGE_RULES, type PageRequest } from './page-request.ts';
import { RUN_RULES, type RunRequest, type RunSettings, SETTINGS_RULES } from './run-request.ts';

/** Runs that are made again and again. */
export interface Cron {
  readonly cron_id: string;
  readonly assistant_id: string;
  readonly thread_id: string | null;
  /** As cron writes it: `0 9 * * 1`. */
  readonly schedule: string;
  readonly timezone?: string | null;
  readonly end_time: string | null;
  readonly enabled?: boolean;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly user_id?: string | null;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly next_run_date?: string | null;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly [field: string]: unknown;
}

/** The schedule on which a cron starts its runs. */
export interface CronSchedule {
  /** As cron writes it: minute, hour, day of the month, month, day of the week. */
  schedule: string;
  /** Of the schedule, as IANA names it: `Europe/Berlin`. @default UTC */
  timezone?: string | null;
  /** When it ends, as ISO 8601. */
  end_time?: string | null;
  /** @default true */
  enabled?: boolean;
}

/** A cron whose runs each have a thread of their own. */
export interface CronCreate
  extends CronSchedule,
    Omit<RunSettings, 'command' | 'on_disconnect' | 'feedback_keys' | 'after_seconds'> {
  /** What becomes of the thread of a run that has ended. @default 'delete' */
  on_run_completed?: 'delete' | 'keep';
}

/** A cron whose runs are all on one thread. */
export interface ThreadCronCreate extends Omit<CronCreate, 'on_run_completed'> {
  /** What is done while another run is on the thread. */
  multitask_strategy?: NonNullable<RunRequest['multitask_strategy']>;
}

/** What is left out stays. */
export type CronUpdate = Partial<Omit<CronCreate, 'assistant_id'>>;

export interface CronFilter {
  assistant_id?: string;
  thread_id?: string;
  enabled?: boolean;
  metadata?: Readonly<Record<string, unknown>>;
}

export interface CronSearch extends CronFilter, PageRequest {
  sort_by?: 'cron_id' | 'assistant_id' | 'thread_id' | 'created_at' | 'updated_at' | 'next_run_date';
  sort_order?: 'asc' | 'desc';
  /** The fields that are wanted. */
  select?: readonly string[];
}

/** Crons of an agent server. */
export class Crons {
  readonly #service: AgentService;

  /** @internal */
  constructor(service: AgentService) {
    this.#service = service;
  }

  async create(cron: CronCreate, options?: CallOptions): Promise<Cron> {
    const name = 'crons.create';
    const body = checkedBody(name, cron, CREATE_RULES);
    return this.#service.json({ name, method: 'POST', path: '/runs/crons', body, options });
  }

  async createForThread(threadId: string, cron: ThreadCronCreate, options?: CallOptions): Promise<Cron> {
    const name = 'crons.createForThread';
    const body = checkedBody(name, cron, THREAD_RULES);
    const path = agentPath(name, 'threads', { thread_id: threadId }, 'runs', 'crons');
    return this.#service.json({ name, method: 'POST', path, body, options });
  }

  search(filter: CronSearch = {}, options?: CallOptions): PageList<Cron> {
    const name = 'crons.search';
    return this.#service.list(() => {
      const body = checkedBody(name, filter, SEARCH_RULES);
      return { name, method: 'POST', path: '/runs/crons/search', body, options };
    });
  }

  async count(filter: CronFilter = {}, options?: CallOptions): Promise<number> {
    const name = 'crons.count';
    const body = checkedBody(name, filter, FILTER_RULES);
    const call = { name, method: 'POST', path: '/runs/crons/count', body, isIdempotent: true, options } as const;
    return this.#service.json(call, 'number');
  }

  async update(cronId: string, changes: CronUpdate, options?: CallOptions): Promise<Cron> {
    const name = 'crons.update';
    const body = checkedBody(name, changes, UPDATE_RULES);
    return this.#service.json({ name, method: 'PATCH', path: cronPath(name, cronId), body, options });
  }

  async delete(cronId: string, options?: CallOptions): Promise<void> {
    const name = 'crons.delete';
    return this.#service.none({ name, method: 'DELETE', path: cronPath(name, cronId), options });
  }
}

function cronPath(call: string, cronId: string): string {
  return agentPath(call, 'runs', 'crons', { cron_id: cronId });
}

const SCHEDULE_RULES: BodyRules<CronSchedule> = {
  schedule: [
    'five or six fields as cron has them, or a word such as @daily',
    (value) => typeof value === 'string' && /^(@\w+|\S+( \S+){4,5})$/.test(value.trim().replace(/\s+/g, ' ')),
  ],
  timezone: ['the name of a time zone, as IANA has it, or null', (value) => value === null || isTimeZone(value)],
  end_time: TIME_OR_NULL,
  enabled: TRUTH,
};

const { command: _c, on_disconnect: _d, feedback_keys: _f, after_seconds: _a, ...RUN_PART } = SETTINGS_RULES;

const CREATE_RULES: BodyRules<CronCreate> = {
  ...RUN_PART,
  ...SCHEDULE_RULES,
  schedule: required([SCHEDULE_RULES.schedule[0], SCHEDULE_RULES.schedule[1]]),
  on_run_completed: oneOf('delete', 'keep'),
};

const { on_run_completed: _o, ...ON_THREAD } = CREATE_RULES;

const THREAD_RULES: BodyRules<ThreadCronCreate> = { ...ON_THREAD, multitask_strategy: RUN_RULES.multitask_strategy };

const { assistant_id: _i, ...CHANGING } = CREATE_RULES;

const UPDATE_RULES: BodyRules<CronUpdate> = { ...CHANGING, schedule: SCHEDULE_RULES.schedule };

const FILTER_RULES: BodyRules<CronFilter> = { assistant_id: TEXT, thread_id: TEXT, enabled: TRUTH, metadata: OBJECT };

const SEARCH_RULES: BodyRules<CronSearch> = {
  ...FILTER_RULES,
  ...PAGE_RULES,
  sort_by: oneOf('cron_id', 'assistant_id', 'thread_id', 'created_at', 'updated_at', 'next_run_date'),
  sort_order: oneOf('asc', 'desc'),
  select: TEXTS,
};

function isTimeZone(value: unknown): boolean {
  try {
    return typeof value === 'string' && new Intl.DateTimeFormat('en', { timeZone: value }) !== undefined;
  } catch {
    return false;
  }
}
