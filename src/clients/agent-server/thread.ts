import type { PageRequest } from './agent-service.ts';
import type { AgentConfig } from './assistants.ts';

export type ThreadStatus = 'idle' | 'busy' | 'interrupted' | 'error' | (string & {});

/** A command that continues a graph after an interrupt. It replaces the input. */
export interface RunCommand {
  /** Response to the interrupt. */
  resume?: unknown;
  update?: unknown;
  /** The next nodes. */
  goto?: unknown;
}

/** An interrupt. The graph waits for a response. */
export interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
  readonly [field: string]: unknown;
}

/** A conversation. Its runs change its state. */
export interface Thread<Values = Record<string, unknown>> {
  readonly thread_id: string;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly status?: ThreadStatus;
  readonly values?: Values | null;
  /** Interrupts by the id of the waiting task. */
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
  /** The next nodes. Empty if the thread waits for input. */
  readonly next: readonly string[];
  readonly tasks: readonly ThreadTask[];
  /** Null before the first run. */
  readonly checkpoint: Checkpoint | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly created_at: string | null;
  readonly parent_checkpoint: Checkpoint | null;
  readonly interrupts?: readonly Interrupt[];
  readonly [field: string]: unknown;
}

/** Lifetime of a thread in minutes, or an object with more settings. */
export type ThreadTimeToLive = number | Readonly<Record<string, unknown>>;

export interface ThreadCreate {
  /** A UUID. @default a new UUID */
  thread_id?: string;
  metadata?: Readonly<Record<string, unknown>>;
  /** Behaviour if the id exists. `raise` responds with 409. @default 'raise' */
  if_exists?: 'raise' | 'do_nothing';
  ttl?: ThreadTimeToLive;
  /** Initial state updates, one entry for each step. */
  supersteps?: readonly {
    readonly updates: readonly { readonly values?: unknown; readonly command?: RunCommand; readonly as_node: string }[];
  }[];
}

/** Changes to a thread. Metadata is merged. */
export interface ThreadUpdate {
  metadata?: Readonly<Record<string, unknown>>;
  ttl?: ThreadTimeToLive;
}

export interface ThreadFilter {
  metadata?: Readonly<Record<string, unknown>>;
  /** Field values that the state must have. */
  values?: Readonly<Record<string, unknown>>;
  status?: ThreadStatus;
}

export interface ThreadSearch extends ThreadFilter, PageRequest {
  ids?: readonly string[];
  sort_by?: 'thread_id' | 'status' | 'created_at' | 'updated_at';
  sort_order?: 'asc' | 'desc';
  /** Fields to return. */
  select?: readonly string[];
}

export interface ThreadPrune {
  thread_ids: readonly string[];
  /** `keep_latest` deletes all states but the latest. */
  strategy: 'delete' | 'keep_latest';
}

export interface ThreadStateUpdate {
  values?: unknown;
  /** State to change. @default the latest */
  checkpoint?: Checkpoint | null;
  /** Node that makes the change. */
  as_node?: string;
}

export interface ThreadHistory {
  /** States per page. @default 10 */
  limit?: number;
  /** Only states before this checkpoint or checkpoint id. */
  before?: string | Checkpoint;
  metadata?: Readonly<Record<string, unknown>>;
  checkpoint?: Checkpoint;
}
