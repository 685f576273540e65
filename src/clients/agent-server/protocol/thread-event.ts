import { isObject } from '../../../config/checker.ts';

/** A type of event to request. Use `custom:<name>` for custom events with that name. */
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

/** Fields of every thread event. */
export interface ThreadEventOf<Method extends string, Data> {
  readonly method: Method;
  /** Method name sent by the server. For events that the client does not recognize, `name` differs from `method`. */
  readonly name: string;
  /** Id of the event. If the server resends an event, the id stays the same. */
  readonly event_id?: string;
  /** Sequence number of the event within its thread. */
  readonly seq?: number;
  readonly params: {
    /** Path of the subagent that sent the event, or an empty list for the main agent. */
    readonly namespace: readonly string[];
    /** Time of the event, in milliseconds since the Unix epoch. */
    readonly timestamp?: number;
    readonly node?: string;
    /** Id of the run, if the server sends it. */
    readonly run_id?: string;
    readonly data: Data;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** Status of a run or subagent. Servers may send other values. */
export type LifecycleStatus = 'started' | 'running' | 'completed' | 'failed' | 'interrupted' | (string & {});

/** Data of a `lifecycle` event. */
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
  /** Error text of a failed run. */
  readonly error?: string;
  readonly checkpoint?: { readonly id: string; readonly ns?: string };
  readonly run_id?: string;
  readonly [field: string]: unknown;
}

/**
 * A content block is one part of a message. Common types are `text`, `reasoning`, `tool_call`, `tool_call_chunk` and
 * `image`.
 */
export interface ContentBlock {
  readonly type: string;
  readonly text?: string;
  readonly reasoning?: string;
  readonly id?: string | null;
  readonly name?: string | null;
  /** Arguments of the tool call: partial JSON text in a `tool_call_chunk`, an object in a `tool_call`. */
  readonly args?: unknown;
  readonly [field: string]: unknown;
}

/** A change to a content block of a message. */
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

/** Token counts that the model reports for a message. */
export interface MessageUsage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly total_tokens?: number;
  readonly [field: string]: unknown;
}

/** Fields of every message event. */
export interface MessageDataOf<Event extends string> {
  readonly event: Event;
  /** Id of the model call, not of the agent's run. Some servers omit this id. */
  readonly run_id?: string;
  readonly [field: string]: unknown;
}

/** Data of a message event, such as the start of a message or a change to a content block. */
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

/** Fields of every tool event. */
export interface ToolDataOf<Event extends string> {
  readonly event: Event;
  readonly tool_call_id: string;
  readonly [field: string]: unknown;
}

/** Data of a tool event. `tool_call_id` identifies the tool call. */
export type ToolData =
  | (ToolDataOf<'tool-started'> & { readonly tool_name: string; readonly input?: unknown })
  | (ToolDataOf<'tool-output-delta'> & { readonly delta: string })
  | (ToolDataOf<'tool-finished'> & { readonly output?: unknown })
  | (ToolDataOf<'tool-error'> & { readonly message: string; readonly code?: string });

/** An event that reports that a run or subagent has started, ended or changed its status. */
export type LifecycleEvent = ThreadEventOf<'lifecycle', LifecycleData>;
/** An event with a chunk of a model's message. Use `MessageAssembler` to combine the chunks. */
export type MessageEvent = ThreadEventOf<'messages', MessageData>;
/** An event that reports the start, progress or end of a tool call. */
export type ToolEvent = ThreadEventOf<'tools', ToolData>;
/** An event with the complete state after a step of the graph. */
export type StateEvent<Values> = ThreadEventOf<'values', Values>;
/** An event with the state changes made by one node, whose name is in `params.node`. */
export type StateUpdateEvent = ThreadEventOf<'updates', Readonly<Record<string, unknown>>>;
/** An event that reports a new checkpoint, from which a run can continue. */
export type CheckpointEvent = ThreadEventOf<
  'checkpoints',
  {
    readonly id: string;
    readonly parent_id?: string;
    /** Number of the step. The input state is step -1. */
    readonly step?: number;
    readonly source?: 'input' | 'loop' | 'update' | 'fork' | (string & {});
    readonly [field: string]: unknown;
  }
>;
/** An event that reports the start or end of a task. */
export type TaskEvent = ThreadEventOf<'tasks', unknown>;
/** A custom event from the graph, or a report from the server, for example of missed events. */
export type ThreadCustomEvent = ThreadEventOf<
  'custom',
  { readonly name?: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** An event that requests input from the user. The run waits until you call `threads.respond`. */
export type InputRequestedEvent = ThreadEventOf<
  'input.requested',
  { readonly interrupt_id: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** An event with an unknown method, which is in the field `name`. */
export type OtherThreadEvent = ThreadEventOf<'other', unknown>;
/** A server-sent event that is not a valid thread event. `params.data` contains the event's text. */
export type MalformedThreadEvent = ThreadEventOf<'malformed', string>;

/**
 * An event on a thread. The field `method` is the type of the event. Some types have a subtype in `params.data.event`.
 */
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

/** A range of sequence numbers that the server skipped because the reader was too slow. */
export interface MissedEvents {
  readonly after: number;
  readonly before: number;
}

/** Returns the range of missed events that an event reports. Returns undefined for all other events. */
export function missedEvents(event: ThreadEvent<unknown>): MissedEvents | undefined {
  if (event.method !== 'custom' || event.params.data.name !== 'missed_events') return undefined;
  const { payload } = event.params.data;
  if (!isObject(payload) || typeof payload.after !== 'number' || typeof payload.before !== 'number') return undefined;
  return { after: payload.after, before: payload.before };
}
