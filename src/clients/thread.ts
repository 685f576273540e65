import type { AgentConfig } from './assistants.ts';
import type { PageRequest } from './page-request.ts';
import type { RunCommand } from './run-request.ts';

export type ThreadStatus = 'idle' | 'busy' | 'interrupted' | 'error' | (string & {});

/** What a graph waits for an answer to. */
export interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
  readonly [field: string]: unknown;
}

/** What runs of one conversation, or of one piece of work, have come to. */
export interface Thread<Values = Record<string, unknown>> {
  readonly thread_id: string;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly status?: ThreadStatus;
  readonly values?: Values | null;
  /** By the id of the task that waits. */
  readonly interrupts?: Readonly<Record<string, readonly Interrupt[]>>;
  readonly config?: AgentConfig;
  readonly [field: string]: unknown;
}

/** Names a state of a thread. */
export interface Checkpoint {
  thread_id?: string;
  checkpoint_id?: string | null;
  checkpoint_ns?: string | null;
  checkpoint_map?: Readonly<Record<string, unknown>> | null;
}

export interface ThreadTask {
  readonly id: string;
  readonly name: string;
  readonly error?: unknown;
  readonly interrupts?: readonly Interrupt[];
  readonly checkpoint?: Checkpoint | null;
  readonly state?: ThreadState | null;
  readonly result?: unknown;
  readonly [field: string]: unknown;
}

export interface ThreadState<Values = Record<string, unknown>> {
  readonly values: Values;
  /** The nodes that come next; none when the thread waits for input. */
  readonly next: readonly string[];
  readonly tasks: readonly ThreadTask[];
  /** Null where nothing has run yet. */
  readonly checkpoint: Checkpoint | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly created_at: string | null;
  readonly parent_checkpoint: Checkpoint | null;
  readonly interrupts?: readonly Interrupt[];
  readonly [field: string]: unknown;
}

/** How long a thread is kept: minutes, or more of it. */
export type ThreadTimeToLive = number | Readonly<Record<string, unknown>>;

export interface ThreadCreate {
  /** A UUID; by default a new one. */
  thread_id?: string;
  metadata?: Readonly<Record<string, unknown>>;
  /** What is done where the id is taken. @default 'raise', a 409 */
  if_exists?: 'raise' | 'do_nothing';
  ttl?: ThreadTimeToLive;
  /** Updates that the thread begins with, step by step. */
  supersteps?: readonly {
    readonly updates: readonly { readonly values?: unknown; readonly command?: RunCommand; readonly as_node: string }[];
  }[];
}

/** Metadata is added to what is there. */
export interface ThreadUpdate {
  metadata?: Readonly<Record<string, unknown>>;
  ttl?: ThreadTimeToLive;
}

export interface ThreadFilter {
  metadata?: Readonly<Record<string, unknown>>;
  /** Fields of the state. */
  values?: Readonly<Record<string, unknown>>;
  status?: ThreadStatus;
}

export interface ThreadSearch extends ThreadFilter, PageRequest {
  ids?: readonly string[];
  sort_by?: 'thread_id' | 'status' | 'created_at' | 'updated_at';
  sort_order?: 'asc' | 'desc';
  /** The fields that are wanted. */
  select?: readonly string[];
}

export interface ThreadPrune {
  thread_ids: readonly string[];
  /** Whether the threads go, or all of their states but the latest. */
  strategy: 'delete' | 'keep_latest';
}

export interface ThreadStateUpdate {
  values?: unknown;
  /** The state that is changed; by default the latest. */
  checkpoint?: Checkpoint | null;
  /** The node as which it is changed. */
  as_node?: string;
}

export interface ThreadHistory {
  /** States of a page. @default 10 */
  limit?: number;
  /** Only states before this one: its id, or all of its checkpoint. */
  before?: string | Checkpoint;
  metadata?: Readonly<Record<string, unknown>>;
  checkpoint?: Checkpoint;
}
