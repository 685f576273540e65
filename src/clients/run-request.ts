import type { AgentConfig } from './assistants.ts';
import {
  ANYTHING,
  type BodyRule,
  type BodyRules,
  OBJECT,
  oneOf,
  required,
  someOf,
  TEXT,
  TEXTS,
  TRUTH,
} from './body-rules.ts';
import type { Checkpoint } from './thread.ts';

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

/** What a graph goes on with after an interrupt, in the place of an input. */
export interface RunCommand {
  /** Answers what it waits for. */
  resume?: unknown;
  update?: unknown;
  /** The nodes that come next. */
  goto?: unknown;
}

/** What every call that makes a run takes. */
export interface RunSettings {
  /** Id of an assistant, or the name of a graph. */
  assistant_id: string;
  /** What the graph is given; null goes on from the state of the thread. */
  input?: unknown;
  command?: RunCommand;
  metadata?: Readonly<Record<string, unknown>>;
  config?: AgentConfig;
  context?: unknown;
  /** Called when the run has ended. */
  webhook?: string;
  /** Nodes before which the run stops, `*` for all. */
  interrupt_before?: '*' | readonly string[];
  interrupt_after?: '*' | readonly string[];
  /** @default 'values' */
  stream_mode?: StreamMode | readonly StreamMode[];
  /** Whether events of subgraphs come as well, with their namespace. @default false */
  stream_subgraphs?: boolean;
  /** Whether the server keeps the events, so that a stream that breaks can go on. @default false */
  stream_resumable?: boolean;
  /** What becomes of the run when the connection ends. @default 'continue' */
  on_disconnect?: 'cancel' | 'continue';
  /** The keys for which the stream gives addresses for feedback. */
  feedback_keys?: readonly string[];
  /** Seconds until the run begins. */
  after_seconds?: number;
  /** When states are kept. @default 'async' */
  durability?: 'sync' | 'async' | 'exit';
}

/** A run on a thread. */
export interface RunRequest extends RunSettings {
  /** The state that it goes on from; by default the latest. */
  checkpoint?: Checkpoint;
  checkpoint_id?: string;
  /** What is done while another run is on the thread; the default is the server's. */
  multitask_strategy?: 'reject' | 'rollback' | 'interrupt' | 'enqueue';
  /** What is done where there is no such thread. @default 'reject' */
  if_not_exists?: 'create' | 'reject';
}

/** A run without a thread that was made before. */
export interface StatelessRunRequest extends RunSettings {
  /** What becomes of what the run has kept. @default 'delete' */
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

const NODES: BodyRule = ["'*' or a list of names of nodes", (value) => value === '*' || TEXTS[1](value)];

export const SETTINGS_RULES: BodyRules<RunSettings> = {
  assistant_id: required(TEXT),
  input: ANYTHING,
  command: OBJECT,
  metadata: OBJECT,
  config: OBJECT,
  context: ANYTHING,
  webhook: TEXT,
  interrupt_before: NODES,
  interrupt_after: NODES,
  stream_mode: someOf(...STREAM_MODES),
  stream_subgraphs: TRUTH,
  stream_resumable: TRUTH,
  on_disconnect: oneOf('cancel', 'continue'),
  feedback_keys: [
    'a list of texts of 1 to 180 characters',
    (value) => TEXTS[1](value) && (value as string[]).every((key) => key.length <= 180),
  ],
  after_seconds: ['a number from 0', (value) => Number.isFinite(value) && (value as number) >= 0],
  durability: oneOf('sync', 'async', 'exit'),
};

export const RUN_RULES: BodyRules<RunRequest> = {
  ...SETTINGS_RULES,
  checkpoint: OBJECT,
  checkpoint_id: TEXT,
  multitask_strategy: oneOf('reject', 'rollback', 'interrupt', 'enqueue'),
  if_not_exists: oneOf('create', 'reject'),
};

export const STATELESS_RUN_RULES: BodyRules<StatelessRunRequest> = {
  ...SETTINGS_RULES,
  on_completion: oneOf('delete', 'keep'),
};
