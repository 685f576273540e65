import { isObject } from '../../../base/options.ts';

/** A kind of event to request. `custom:<name>` requests custom events with this name. */
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

/** Fields that all of a thread's events have. */
export interface ThreadEventOf<Method extends string, Data> {
  readonly method: Method;
  /** The method as sent by the server. Differs from `method` if this version does not recognize the event. */
  readonly name: string;
  /** The event's id, which stays the same if the server sends the event again. */
  readonly event_id?: string;
  /** The event's sequence number in its thread. */
  readonly seq?: number;
  readonly params: {
    /** Path of the subagent that sent the event. Empty for the agent itself. */
    readonly namespace: readonly string[];
    /** Time in milliseconds since 1970. */
    readonly timestamp?: number;
    readonly node?: string;
    /** The run's id, if the server sends it. */
    readonly run_id?: string;
    readonly data: Data;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** The state of a run or of a subagent. Servers may send other values. */
export type LifecycleStatus = 'started' | 'running' | 'completed' | 'failed' | 'interrupted' | (string & {});

/** The start or end of a run or subagent. */
export interface LifecycleData {
  readonly event: LifecycleStatus;
  readonly graph_name?: string;
  /** Why the subagent was started. */
  readonly cause?: {
    readonly type: 'toolCall' | 'send' | 'edge' | (string & {});
    readonly tool_call_id?: string;
    readonly from_node?: string;
    readonly [field: string]: unknown;
  };
  /** The error, if the run failed. */
  readonly error?: string;
  readonly checkpoint?: { readonly id: string; readonly ns?: string };
  readonly run_id?: string;
  readonly [field: string]: unknown;
}

/** A part of a message. `type` is for example `text`, `reasoning`, `tool_call`, `tool_call_chunk` or `image`. */
export interface ContentBlock {
  readonly type: string;
  readonly text?: string;
  readonly reasoning?: string;
  readonly id?: string | null;
  readonly name?: string | null;
  /** The tool call's arguments: incomplete JSON text in a `tool_call_chunk`, an object in a `tool_call`. */
  readonly args?: unknown;
  readonly [field: string]: unknown;
}

/** A change to one of a message's content blocks. */
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

/** A message's token counts, as reported by the model. */
export interface MessageUsage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly total_tokens?: number;
  readonly [field: string]: unknown;
}

/** Fields that all events of a message have. */
export interface MessageDataOf<Event extends string> {
  readonly event: Event;
  /** The model call's id, if the server sends it. Different from the id of the agent's run. */
  readonly run_id?: string;
  readonly [field: string]: unknown;
}

/** The data of a message event: the start, a content block, a delta, or the end of a message. */
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

/** Fields that all events of a tool call have. */
export interface ToolDataOf<Event extends string> {
  readonly event: Event;
  readonly tool_call_id: string;
  readonly [field: string]: unknown;
}

/** The data of a tool event. `tool_call_id` identifies the call. */
export type ToolData =
  | (ToolDataOf<'tool-started'> & { readonly tool_name: string; readonly input?: unknown })
  | (ToolDataOf<'tool-output-delta'> & { readonly delta: string })
  | (ToolDataOf<'tool-finished'> & { readonly output?: unknown })
  | (ToolDataOf<'tool-error'> & { readonly message: string; readonly code?: string });

/** The start or end of a run or of a subagent. */
export type LifecycleEvent = ThreadEventOf<'lifecycle', LifecycleData>;
/** A chunk of a model's message. See `MessageAssembler`. */
export type MessageEvent = ThreadEventOf<'messages', MessageData>;
/** The start, progress or end of a tool call. */
export type ToolEvent = ThreadEventOf<'tools', ToolData>;
/** The complete state after a step. */
export type StateEvent<Values> = ThreadEventOf<'values', Values>;
/** State changes made by a node. `params.node` is the node's name. */
export type StateUpdateEvent = ThreadEventOf<'updates', Readonly<Record<string, unknown>>>;
/** A stored state, from which a run can start. */
export type CheckpointEvent = ThreadEventOf<
  'checkpoints',
  {
    readonly id: string;
    readonly parent_id?: string;
    /** The step's number. The input state has the number -1. */
    readonly step?: number;
    readonly source?: 'input' | 'loop' | 'update' | 'fork' | (string & {});
    readonly [field: string]: unknown;
  }
>;
/** The start or end of a task. */
export type TaskEvent = ThreadEventOf<'tasks', unknown>;
/** A custom event written by the graph, or a report from the server, such as the one that `missedEvents` reads. */
export type ThreadCustomEvent = ThreadEventOf<
  'custom',
  { readonly name?: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** The agent requests input. The run waits until `threads.respond` is called. */
export type InputRequestedEvent = ThreadEventOf<
  'input.requested',
  { readonly interrupt_id: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** An event whose method this version does not know. `name` contains the method. */
export type OtherThreadEvent = ThreadEventOf<'other', unknown>;
/** A server-sent event that is not a valid thread event. `params.data` contains its text. */
export type MalformedThreadEvent = ThreadEventOf<'malformed', string>;

/** An event on a thread. `method` identifies its kind. Some kinds have subtypes in `params.data.event`. */
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

/** A gap in the sequence numbers. The server skipped these events because the reader was too slow. */
export interface MissedEvents {
  readonly after: number;
  readonly before: number;
}

/** Returns the gap that an event reports. Returns undefined if the event does not report missed events. */
export function missedEvents(event: ThreadEvent<unknown>): MissedEvents | undefined {
  if (event.method !== 'custom' || event.params.data.name !== 'missed_events') return undefined;
  const { payload } = event.params.data;
  if (!isObject(payload) || typeof payload.after !== 'number' || typeof payload.before !== 'number') return undefined;
  return { after: payload.after, before: payload.before };
}
