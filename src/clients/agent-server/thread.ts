import type { PageRequest } from './agent-service.ts';
import type { AgentConfig } from './assistants.ts';

/** The status of a thread. Servers may send other values. */
export type ThreadStatus = 'idle' | 'busy' | 'interrupted' | 'error' | (string & {});

/** A command that continues a graph after an interrupt. Sent instead of an input. */
export interface RunCommand {
  /** The response to the interrupt. */
  resume?: unknown;
  update?: unknown;
  /** The nodes to run next. */
  goto?: unknown;
}

/** An interrupt: the graph waits until it receives a response. */
export interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
  readonly [field: string]: unknown;
}

/** A conversation whose state its runs change. */
export interface Thread<Values = Record<string, unknown>> {
  readonly thread_id: string;
  /** ISO 8601 timestamp. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly status?: ThreadStatus;
  readonly values?: Values | null;
  /** Pending interrupts, by the id of the waiting task. */
  readonly interrupts?: Readonly<Record<string, readonly Interrupt[]>>;
  readonly config?: AgentConfig;
  readonly [field: string]: unknown;
}

/** Identifies a state of a thread. */
export interface Checkpoint {
  thread_id?: string;
  checkpoint_id?: string | null;
  checkpoint_ns?: string | null;
  checkpoint_map?: Readonly<Record<string, unknown>> | null;
}

/** A node that runs next or has failed, with its interrupts. */
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

/** The state of a thread at a checkpoint. */
export interface ThreadState<Values = Record<string, unknown>> {
  readonly values: Values;
  /** The nodes that run next. Empty if the thread waits for input. */
  readonly next: readonly string[];
  readonly tasks: readonly ThreadTask[];
  /** The state's checkpoint. Null before the first run. */
  readonly checkpoint: Checkpoint | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly created_at: string | null;
  readonly parent_checkpoint: Checkpoint | null;
  readonly interrupts?: readonly Interrupt[];
  readonly [field: string]: unknown;
}

/** A thread's lifetime in minutes, or an object with further settings. */
export type ThreadTimeToLive = number | Readonly<Record<string, unknown>>;

/** The fields of a new thread. All fields are optional. */
export interface ThreadCreate {
  /** The thread's id, a UUID. @default a new UUID */
  thread_id?: string;
  metadata?: Readonly<Record<string, unknown>>;
  /**
   * Behaviour if the id already exists. With `raise`, the server responds with 409.
   * @default 'raise'
   */
  if_exists?: 'raise' | 'do_nothing';
  ttl?: ThreadTimeToLive;
  /** Updates that create the initial states, one entry per step. */
  supersteps?: readonly {
    readonly updates: readonly { readonly values?: unknown; readonly command?: RunCommand; readonly as_node: string }[];
  }[];
}

/** Changes to a thread. The given metadata is merged into the existing metadata. */
export interface ThreadUpdate {
  metadata?: Readonly<Record<string, unknown>>;
  ttl?: ThreadTimeToLive;
}

/** Selects threads. A thread must match every field that is set. */
export interface ThreadFilter {
  metadata?: Readonly<Record<string, unknown>>;
  /** Values that the state's fields must have. */
  values?: Readonly<Record<string, unknown>>;
  status?: ThreadStatus;
}

/** A filter, the order and the fields of a search for threads. */
export interface ThreadSearch extends ThreadFilter, PageRequest {
  ids?: readonly string[];
  sort_by?: 'thread_id' | 'status' | 'created_at' | 'updated_at';
  sort_order?: 'asc' | 'desc';
  /** Fields that the server returns. */
  select?: readonly string[];
}

/** Threads to delete or to shorten. */
export interface ThreadPrune {
  thread_ids: readonly string[];
  /** With `delete`, deletes the threads. With `keep_latest`, deletes only their earlier states. */
  strategy: 'delete' | 'keep_latest';
}

/** A change of a thread's state. */
export interface ThreadStateUpdate {
  values?: unknown;
  /** State to change. @default the latest state */
  checkpoint?: Checkpoint | null;
  /** Node to which the change is attributed. */
  as_node?: string;
}

/** Selects earlier states of a thread, newest first. */
export interface ThreadHistory {
  /** Number of states per page. @default 10 */
  limit?: number;
  /** Returns only states before this checkpoint or checkpoint id. */
  before?: string | Checkpoint;
  metadata?: Readonly<Record<string, unknown>>;
  checkpoint?: Checkpoint;
}
