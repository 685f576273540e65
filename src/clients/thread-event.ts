import { isObject } from '../base/options.ts';

/** A kind of event of a thread, by which it is asked for; `custom:<name>` for those of one name. */
export type ThreadChannel =
  | 'values'
  | 'updates'
  | 'messages'
  | 'tools'
  | 'lifecycle'
  | 'input'
  | 'checkpoints'
  | 'tasks'
  | 'custom'
  | (string & {});

/** Fields that every event of a thread has. */
export interface ThreadEventOf<Method extends string, Data> {
  readonly method: Method;
  /** The method as it came: of an event that this version does not know it is not `method`. */
  readonly name: string;
  /** One and the same event has one id, however often it is sent. */
  readonly event_id?: string;
  /** Where it stands among all events of the thread. */
  readonly seq?: number;
  readonly params: {
    /** Where in the agent it is from: empty for the agent itself, the names of subagents with their task else. */
    readonly namespace: readonly string[];
    /** Milliseconds since 1970. */
    readonly timestamp?: number;
    readonly node?: string;
    /** The run that it belongs to, where the server tells. */
    readonly run_id?: string;
    readonly data: Data;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

export type LifecycleStatus = 'started' | 'running' | 'completed' | 'failed' | 'interrupted' | (string & {});

/** A run, or the work of a subagent, begins or ends. */
export interface LifecycleData {
  readonly event: LifecycleStatus;
  readonly graph_name?: string;
  /** What a subagent was started by. */
  readonly cause?: {
    readonly type: 'toolCall' | 'send' | 'edge' | (string & {});
    readonly tool_call_id?: string;
    readonly from_node?: string;
    readonly [field: string]: unknown;
  };
  /** Why it failed. */
  readonly error?: string;
  readonly checkpoint?: { readonly id: string; readonly ns?: string };
  readonly run_id?: string;
  readonly [field: string]: unknown;
}

/** A part of a message: `type` is `text`, `reasoning`, `tool_call`, `tool_call_chunk`, `image` and so on. */
export interface ContentBlock {
  readonly type: string;
  readonly text?: string;
  readonly reasoning?: string;
  readonly id?: string | null;
  readonly name?: string | null;
  /** Text as far as it has come, of a `tool_call_chunk`; an object, of a `tool_call`. */
  readonly args?: unknown;
  readonly [field: string]: unknown;
}

/** What a part of a message grows by. */
export type BlockDelta =
  | { readonly type: 'text-delta'; readonly text: string; readonly [field: string]: unknown }
  | { readonly type: 'reasoning-delta'; readonly reasoning: string; readonly [field: string]: unknown }
  | {
      readonly type: 'data-delta';
      readonly data: string;
      readonly encoding?: string;
      readonly [field: string]: unknown;
    }
  | { readonly type: 'block-delta'; readonly fields: ContentBlock; readonly [field: string]: unknown };

/** Tokens of a message, as its model counts them. */
export interface MessageUsage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly total_tokens?: number;
  readonly [field: string]: unknown;
}

/** Fields that every event of a message has. */
export interface MessageDataOf<Event extends string> {
  readonly event: Event;
  /** Of the call of the model, where the server tells; not the run of the agent. */
  readonly run_id?: string;
  readonly [field: string]: unknown;
}

export type MessageData =
  | (MessageDataOf<'message-start'> & {
      readonly id: string;
      /** @default 'ai' */
      readonly role?: 'ai' | 'human' | 'system' | (string & {});
      readonly metadata?: Readonly<Record<string, unknown>>;
    })
  | (MessageDataOf<'content-block-start'> & { readonly index: number; readonly content: ContentBlock })
  | (MessageDataOf<'content-block-delta'> & { readonly index: number; readonly delta: BlockDelta })
  | (MessageDataOf<'content-block-finish'> & { readonly index: number; readonly content: ContentBlock })
  | (MessageDataOf<'message-finish'> & { readonly usage?: MessageUsage | null; readonly reason?: string })
  | (MessageDataOf<'error'> & { readonly message: string; readonly code?: string });

/** Fields that every event of a tool call has. */
export interface ToolDataOf<Event extends string> {
  readonly event: Event;
  readonly tool_call_id: string;
  readonly [field: string]: unknown;
}

export type ToolData =
  | (ToolDataOf<'tool-started'> & { readonly tool_name: string; readonly input?: unknown })
  | (ToolDataOf<'tool-output-delta'> & { readonly delta: string })
  | (ToolDataOf<'tool-finished'> & { readonly output?: unknown })
  | (ToolDataOf<'tool-error'> & { readonly message: string; readonly code?: string });

export type LifecycleEvent = ThreadEventOf<'lifecycle', LifecycleData>;
/** A piece of a message of a model; see `MessageAssembler`. */
export type MessageEvent = ThreadEventOf<'messages', MessageData>;
/** A call of a tool begins, goes on or has ended. */
export type ToolEvent = ThreadEventOf<'tools', ToolData>;
/** The whole state after a step. */
export type StateEvent<Values> = ThreadEventOf<'values', Values>;
/** What a node has changed; `params.node` is its name. */
export type StateUpdateEvent = ThreadEventOf<'updates', Readonly<Record<string, unknown>>>;
/** A state was kept, from which a run can start. */
export type CheckpointEvent = ThreadEventOf<
  'checkpoints',
  {
    readonly id: string;
    readonly parent_id?: string;
    /** From -1 on, the input. */
    readonly step?: number;
    readonly source?: 'input' | 'loop' | 'update' | 'fork' | (string & {});
    readonly [field: string]: unknown;
  }
>;
/** A task begins, or has ended. */
export type TaskEvent = ThreadEventOf<'tasks', unknown>;
/** What the graph itself writes, and what the server tells beside it: see `missedEvents`. */
export type ThreadCustomEvent = ThreadEventOf<
  'custom',
  { readonly name?: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** The run stops until it is answered: `threads.respond`. */
export type InputRequestedEvent = ThreadEventOf<
  'input.requested',
  { readonly interrupt_id: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** An event that this version does not know; `name` is its method. */
export type OtherThreadEvent = ThreadEventOf<'other', unknown>;
/** What is no event: `params.data` is its text. */
export type MalformedThreadEvent = ThreadEventOf<'malformed', string>;

/** An event of a thread; `method` tells which, and of some `params.data.event` what of it. */
export type ThreadEvent<Values = Record<string, unknown>> =
  | LifecycleEvent
  | MessageEvent
  | ToolEvent
  | StateEvent<Values>
  | StateUpdateEvent
  | CheckpointEvent
  | TaskEvent
  | ThreadCustomEvent
  | InputRequestedEvent
  | OtherThreadEvent
  | MalformedThreadEvent;

/** Which events a reader who was too slow has not been sent, by their `seq`: those behind `after` and ahead of `before`. */
export interface MissedEvents {
  readonly after: number;
  readonly before: number;
}

/** What was missed ahead of this event, where a server tells of that by it; undefined for any other event. */
export function missedEvents(event: ThreadEvent<unknown>): MissedEvents | undefined {
  if (event.method !== 'custom' || event.params.data.name !== 'missed_events') return undefined;
  const { payload } = event.params.data;
  if (!isObject(payload) || typeof payload.after !== 'number' || typeof payload.before !== 'number') return undefined;
  return { after: payload.after, before: payload.before };
}
