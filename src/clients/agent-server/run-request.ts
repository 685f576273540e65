import type { BodySchema } from '../body.ts';
import { required, TEXT } from '../schema.ts';
import type { AgentConfig } from './assistants.ts';
import type { Checkpoint, RunCommand } from './thread.ts';

/** Selects the events that a run streams. A run can have several stream modes. */
export type StreamMode =
  | 'values'
  | 'messages'
  | 'messages-tuple'
  | 'updates'
  | 'events'
  | 'tasks'
  | 'checkpoints'
  | 'debug'
  | 'custom'
  | 'tools';

/** Fields that every call that creates runs accepts. */
export interface RunSettings {
  /** Id of an assistant, or name of a graph. */
  assistant_id: string;
  /** The graph's input. `null` continues from the thread's state. */
  input?: unknown;
  command?: RunCommand;
  metadata?: Readonly<Record<string, unknown>>;
  config?: AgentConfig;
  context?: unknown;
  /** URL that the server calls when the run ends. */
  webhook?: string;
  /** Nodes before which the run stops. `*` means all nodes. */
  interrupt_before?: '*' | readonly string[];
  interrupt_after?: '*' | readonly string[];
  /** @default 'values' */
  stream_mode?: StreamMode | readonly StreamMode[];
  /**
   * Whether to stream events from subgraphs too. Their namespace identifies the subgraph.
   * @default false
   */
  stream_subgraphs?: boolean;
  /**
   * Whether the server stores the events, so that a broken stream can continue.
   * @default false
   */
  stream_resumable?: boolean;
  /**
   * Whether the run is cancelled when the connection ends.
   * @default 'continue'
   */
  on_disconnect?: 'cancel' | 'continue';
  /** Feedback keys. The stream returns a feedback URL for each key. */
  feedback_keys?: readonly string[];
  /** Delay before the run starts, in seconds. */
  after_seconds?: number;
  /**
   * When the server stores the graph's states.
   * @default 'async'
   */
  durability?: 'sync' | 'async' | 'exit';
}

/** A run on a thread. */
export interface RunRequest extends RunSettings {
  /** State to continue from. @default the latest state */
  checkpoint?: Checkpoint;
  checkpoint_id?: string;
  /** Behaviour if the thread already has a run. The default depends on the server. */
  multitask_strategy?: 'reject' | 'rollback' | 'interrupt' | 'enqueue';
  /** Behaviour if the thread does not exist. @default 'reject' */
  if_not_exists?: 'create' | 'reject';
}

/** A run without a thread. */
export interface StatelessRunRequest extends RunSettings {
  /**
   * Whether the server deletes the run's data when the run ends.
   * @default 'delete'
   */
  on_completion?: 'delete' | 'keep';
}

export const STREAM_MODES: readonly StreamMode[] = [
  'values',
  'messages',
  'messages-tuple',
  'updates',
  'events',
  'tasks',
  'checkpoints',
  'debug',
  'custom',
  'tools',
];

/** Validates only `assistant_id`. The server validates all other fields. */
export const RUN: BodySchema = required<RunSettings>({ assistant_id: TEXT });
