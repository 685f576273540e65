import {
  ANY,
  listOf,
  objectOf,
  oneOf,
  oneOrMoreOf,
  RECORD,
  request,
  type Schema,
  TEXT,
  TRUE_OR_FALSE,
  value,
} from '../schema.ts';
import type { AgentConfig } from './assistants.ts';
import type { Checkpoint, RunCommand } from './thread.ts';

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

/** Fields of all calls that create runs. */
export interface RunSettings {
  /** Id of an assistant, or name of a graph. */
  assistant_id: string;
  /** Input of the graph. `null` continues from the state of the thread. */
  input?: unknown;
  command?: RunCommand;
  metadata?: Readonly<Record<string, unknown>>;
  config?: AgentConfig;
  context?: unknown;
  /** URL that is called when the run has ended. */
  webhook?: string;
  /** Nodes before which the run stops. `*` is all nodes. */
  interrupt_before?: '*' | readonly string[];
  interrupt_after?: '*' | readonly string[];
  /** @default 'values' */
  stream_mode?: StreamMode | readonly StreamMode[];
  /** Whether to stream events of subgraphs, with their namespace. @default false */
  stream_subgraphs?: boolean;
  /** Whether the server stores the events, so that a broken stream can continue. @default false */
  stream_resumable?: boolean;
  /** Whether the run is cancelled when the connection ends. @default 'continue' */
  on_disconnect?: 'cancel' | 'continue';
  /** Keys for which the stream returns feedback URLs. */
  feedback_keys?: readonly string[];
  /** Seconds until the run starts. */
  after_seconds?: number;
  /** When states are stored. @default 'async' */
  durability?: 'sync' | 'async' | 'exit';
}

/** A run on a thread. */
export interface RunRequest extends RunSettings {
  /** State to continue from. @default the latest */
  checkpoint?: Checkpoint;
  checkpoint_id?: string;
  /** Behaviour if the thread already has a run. The default depends on the server. */
  multitask_strategy?: 'reject' | 'rollback' | 'interrupt' | 'enqueue';
  /** Behaviour if the thread does not exist. @default 'reject' */
  if_not_exists?: 'create' | 'reject';
}

/** A run without a thread. */
export interface StatelessRunRequest extends RunSettings {
  /** Whether the data of the run is deleted when it ends. @default 'delete' */
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

const NODES = value<string[]>("'*' or a list of names of nodes", (nodes) => nodes === '*' || Array.isArray(nodes));

/** Schemas of the optional fields of RunSettings. */
export const RUN_SETTINGS: {
  readonly [Field in Exclude<keyof RunSettings, 'assistant_id'>]-?: Schema<NonNullable<RunSettings[Field]>>;
} = {
  input: ANY,
  command: objectOf<RunCommand>(),
  metadata: RECORD,
  config: objectOf<AgentConfig>(),
  context: ANY,
  webhook: TEXT,
  interrupt_before: NODES,
  interrupt_after: NODES,
  stream_mode: oneOrMoreOf(...STREAM_MODES),
  stream_subgraphs: TRUE_OR_FALSE,
  stream_resumable: TRUE_OR_FALSE,
  on_disconnect: oneOf('cancel', 'continue'),
  feedback_keys: listOf(value<string>('text of 1 to 180 characters', isFeedbackKey)),
  after_seconds: value<number>('a number from 0', (seconds) => Number.isFinite(seconds) && (seconds as number) >= 0),
  durability: oneOf('sync', 'async', 'exit'),
};

export const MULTITASK_STRATEGY: Schema<NonNullable<RunRequest['multitask_strategy']>> = oneOf(
  'reject',
  'rollback',
  'interrupt',
  'enqueue',
);

export const RUN_REQUEST: Schema<RunRequest> = request<RunRequest>(
  { assistant_id: TEXT },
  {
    ...RUN_SETTINGS,
    checkpoint: objectOf<Checkpoint>(),
    checkpoint_id: TEXT,
    multitask_strategy: MULTITASK_STRATEGY,
    if_not_exists: oneOf('create', 'reject'),
  },
);

export const STATELESS_RUN_REQUEST: Schema<StatelessRunRequest> = request<StatelessRunRequest>(
  { assistant_id: TEXT },
  { ...RUN_SETTINGS, on_completion: oneOf('delete', 'keep') },
);

function isFeedbackKey(key: unknown): boolean {
  return typeof key === 'string' && key !== '' && key.length <= 180;
}
