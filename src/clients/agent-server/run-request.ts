import * as v from 'valibot';
import type { BodySchema } from '../body.ts';
import { required, TEXT, TEXTS } from '../schema.ts';
import type { AgentConfig } from './assistants.ts';
import type { Checkpoint, RunCommand } from './thread.ts';

/** Type of events that a run streams. A run can use several stream modes. */
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

/** Fields of every request that creates a run. */
export interface RunSettings {
  /** Id of an assistant or name of a graph. */
  assistant_id: string;
  /** The graph's input. Pass `null` to continue from the thread's state. */
  input?: unknown;
  command?: RunCommand;
  metadata?: Readonly<Record<string, unknown>>;
  config?: AgentConfig;
  context?: unknown;
  /** URL that the server calls when the run ends. */
  webhook?: string;
  /** Names of the nodes before which the run stops. Use `*` for all nodes. */
  interrupt_before?: '*' | readonly string[];
  interrupt_after?: '*' | readonly string[];
  /** @default 'values' */
  stream_mode?: StreamMode | readonly StreamMode[];
  /** Whether to include events from subgraphs. The namespace of an event identifies its subgraph. @default false */
  stream_subgraphs?: boolean;
  /** Whether the server stores events, which lets the client resume a broken stream. @default false */
  stream_resumable?: boolean;
  /** Whether to cancel or continue the run when the connection ends. @default 'continue' */
  on_disconnect?: 'cancel' | 'continue';
  /** Keys of the feedback to collect. The stream returns a feedback URL for each key. */
  feedback_keys?: readonly string[];
  /** Delay before the run starts, in seconds. */
  after_seconds?: number;
  /** When the server saves the graph's state. @default 'async' */
  durability?: 'sync' | 'async' | 'exit';
}

/** A run on a thread. */
export interface RunRequest extends RunSettings {
  /** Checkpoint to continue from. @default the latest checkpoint */
  checkpoint?: Checkpoint;
  checkpoint_id?: string;
  /** What to do if another run is active on the thread. The default depends on the server. */
  multitask_strategy?: 'reject' | 'rollback' | 'interrupt' | 'enqueue';
  /** Whether to create a thread that does not exist, or to reject the run. @default 'reject' */
  if_not_exists?: 'create' | 'reject';
}

/** A run without a thread. */
export interface StatelessRunRequest extends RunSettings {
  /** Whether to delete or keep the run's data after the run. @default 'delete' */
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

const STREAM_MODE = v.union([TEXT, TEXTS], 'Expected a string or a list of strings');

/**
 * Schema that validates only the fields of the interface. The server validates all other fields. A server may ignore
 * invalid feedback keys, so the missing feedback URLs would be the first sign of the mistake.
 */
export const RUN: BodySchema = required<RunSettings>(
  { assistant_id: TEXT },
  { feedback_keys: TEXTS, stream_mode: STREAM_MODE as never },
);
