import type { PageRequest } from './agent-service.ts';
import type { AgentConfig } from './assistants.ts';

/** Status of a thread. Servers may send other values. */
export type ThreadStatus = 'idle' | 'busy' | 'interrupted' | 'error' | (string & {});

/** A command that continues a graph after an interrupt, used instead of an input. */
export interface RunCommand {
  /** Response to the interrupt. */
  resume?: unknown;
  update?: unknown;
  /** Names of the nodes to run next. */
  goto?: unknown;
}

/** An interrupt, which pauses the graph until it receives a response. */
export interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
  readonly [field: string]: unknown;
}

/** A conversation with a state that runs can change. */
export interface Thread<Values = Record<string, unknown>> {
  readonly thread_id: string;
  /** ISO 8601 timestamp. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly status?: ThreadStatus;
  readonly values?: Values | null;
  /** Pending interrupts, keyed by the id of the waiting task. */
  readonly interrupts?: Readonly<Record<string, readonly Interrupt[]>>;
  readonly config?: AgentConfig;
  readonly [field: string]: unknown;
}

/** Identifies a saved state of a thread. */
export interface Checkpoint {
  thread_id?: string;
  checkpoint_id?: string | null;
  checkpoint_ns?: string | null;
  checkpoint_map?: Readonly<Record<string, unknown>> | null;
}

/** A node that will run next, is interrupted or has failed. */
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

/** State of a thread at a checkpoint. */
export interface ThreadState<Values = Record<string, unknown>> {
  readonly values: Values;
  /** Names of the nodes to run next. The list is empty if the thread is waiting for input. */
  readonly next: readonly string[];
  readonly tasks: readonly ThreadTask[];
  /** Checkpoint of the state, or null before the first run. */
  readonly checkpoint: Checkpoint | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly created_at: string | null;
  readonly parent_checkpoint: Checkpoint | null;
  readonly interrupts?: readonly Interrupt[];
  readonly [field: string]: unknown;
}

/** Lifetime of a thread in minutes, or an object with more settings. */
export type ThreadTimeToLive = number | Readonly<Record<string, unknown>>;

/** A request to create a thread. All fields are optional. */
export interface ThreadCreate {
  /** UUID of the thread. @default a new UUID */
  thread_id?: string;
  metadata?: Readonly<Record<string, unknown>>;
  /**
   * What to do if a thread with this id already exists. With `raise`, the server responds with status 409.
   * @default 'raise'
   */
  if_exists?: 'raise' | 'do_nothing';
  ttl?: ThreadTimeToLive;
  /** Updates that create the thread's first states, with one entry per step. */
  supersteps?: readonly {
    readonly updates: readonly { readonly values?: unknown; readonly command?: RunCommand; readonly as_node: string }[];
  }[];
}

/** Fields of a thread to change. New metadata is merged into the existing metadata. */
export interface ThreadUpdate {
  metadata?: Readonly<Record<string, unknown>>;
  ttl?: ThreadTimeToLive;
}

/** Selects threads that match all of the given fields. */
export interface ThreadFilter {
  metadata?: Readonly<Record<string, unknown>>;
  /** Returns only threads whose state contains these values. */
  values?: Readonly<Record<string, unknown>>;
  status?: ThreadStatus;
}

/** Filter, sort order and returned fields of a search for threads. */
export interface ThreadSearch extends ThreadFilter, PageRequest {
  ids?: readonly string[];
  sort_by?: 'thread_id' | 'status' | 'created_at' | 'updated_at';
  sort_order?: 'asc' | 'desc';
  /** Names of the fields to return. */
  select?: readonly string[];
}

/** A request to delete threads or their earlier states. */
export interface ThreadPrune {
  thread_ids: readonly string[];
  /** Set `delete` to delete the threads, or `keep_latest` to keep only the latest state of each thread. */
  strategy: 'delete' | 'keep_latest';
}

/** A change to a thread's state. */
export interface ThreadStateUpdate {
  values?: unknown;
  /** Checkpoint of the state to change. @default the latest checkpoint */
  checkpoint?: Checkpoint | null;
  /** Name of the node to which the change is attributed. */
  as_node?: string;
}

/** Selects earlier states of a thread, newest first. */
export interface ThreadHistory {
  /** Number of states per page. @default 10 */
  limit?: number;
  /** Checkpoint or checkpoint id before which to list states. */
  before?: string | Checkpoint;
  metadata?: Readonly<Record<string, unknown>>;
  checkpoint?: Checkpoint;
}
