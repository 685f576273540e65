import { isObject } from '../../../base/options.ts';
import type { ServerSentEvent } from '../../../http/event-stream.ts';
import { parseJson } from '../../errors.ts';
import type { Interrupt, ThreadTask } from '../thread.ts';

/** Fields that every event in a run's stream has. */
export interface AgentEventOf<Event extends string, Data> {
  readonly event: Event;
  readonly data: Data;
  /** Name of the server-sent event, for example `updates|researcher:1`. */
  readonly name: string;
  /** Path of the subgraph that sent the event. Empty for the main graph. */
  readonly namespace: readonly string[];
  /** The event's id, after which a stream can continue. Undefined if the server sends none. */
  readonly id: string | undefined;
}

/** A message from a model, a user or a tool, which may be incomplete. */
export interface AgentMessage {
  readonly type?: 'human' | 'ai' | 'AIMessageChunk' | 'tool' | 'system' | (string & {});
  readonly id?: string | null;
  readonly content?: string | readonly unknown[];
  readonly [field: string]: unknown;
}

/** The first event of a stream. Its data contains the run's id. */
export type MetadataEvent = AgentEventOf<'metadata', { readonly run_id: string; readonly [field: string]: unknown }>;
/** The complete state after a step. */
export type ValuesEvent<Values> = AgentEventOf<'values', Values>;
/** State changes made in a step, by node name. */
export type UpdatesEvent = AgentEventOf<
  'updates',
  { readonly __interrupt__?: readonly Interrupt[]; readonly [node: string]: unknown }
>;
/** Mode `messages-tuple`: a message chunk and its metadata. */
export type MessagesEvent = AgentEventOf<
  'messages',
  readonly [message: AgentMessage, metadata: Readonly<Record<string, unknown>>]
>;
/** Mode `messages`: incomplete messages. */
export type MessagesPartialEvent = AgentEventOf<'messages/partial', readonly AgentMessage[]>;
/** Mode `messages`: complete messages. */
export type MessagesCompleteEvent = AgentEventOf<'messages/complete', readonly AgentMessage[]>;
/** Mode `messages`: the messages' metadata by message id. */
export type MessagesMetadataEvent = AgentEventOf<'messages/metadata', Readonly<Record<string, unknown>>>;
/** Mode `events`: an event from one of the graph's components. */
export type EventsEvent = AgentEventOf<
  'events',
  { readonly event: string; readonly name?: string; readonly data?: unknown; readonly [field: string]: unknown }
>;
/** The start or end of a task. */
export type TasksEvent = AgentEventOf<'tasks', ThreadTask>;
/** A new checkpoint of the thread. */
export type CheckpointsEvent = AgentEventOf<'checkpoints', Readonly<Record<string, unknown>>>;
/** Debug information about a step of the graph. */
export type DebugEvent = AgentEventOf<'debug', Readonly<Record<string, unknown>>>;
/** A custom event written by the graph. */
export type CustomEvent = AgentEventOf<'custom', unknown>;
/** The start, progress or end of a tool call. */
export type ToolsEvent = AgentEventOf<'tools', Readonly<Record<string, unknown>>>;
/** The run failed. When the stream ends, it throws this error as a RunFailedError. */
export type ErrorEvent = AgentEventOf<'error', RunError>;
/** Feedback URLs by feedback key. Pass a URL to `submitFeedback`. */
export type FeedbackEvent = AgentEventOf<'feedback', Readonly<Record<string, string>>>;
/** The last event of a stream, which only some servers send. */
export type EndEvent = AgentEventOf<'end', unknown>;
/** An event that this version does not know. Data that is not JSON is returned as text. */
export type OtherEvent = AgentEventOf<'other', unknown>;
/** A known event whose data is not JSON or has an unexpected type. `data` is the original text. */
export type MalformedEvent = AgentEventOf<'malformed', string>;

/** An event in a run's stream. `event` identifies its kind. */
export type AgentEvent<Values = Record<string, unknown>> =
  | MetadataEvent
  | ValuesEvent<Values>
  | UpdatesEvent
  | MessagesEvent
  | MessagesPartialEvent
  | MessagesCompleteEvent
  | MessagesMetadataEvent
  | EventsEvent
  | TasksEvent
  | CheckpointsEvent
  | DebugEvent
  | CustomEvent
  | ToolsEvent
  | ErrorEvent
  | FeedbackEvent
  | EndEvent
  | OtherEvent
  | MalformedEvent;

/** The error of a failed run. */
export interface RunError {
  /** Name of the error. */
  readonly error?: string;
  readonly message?: string;
  readonly [field: string]: unknown;
}

// Matches the names of events that this version knows, by the type of their data.
const OBJECT = /^(?:metadata|updates|messages\/metadata|events|tasks|checkpoints|debug|tools|feedback)$/;
const LIST = /^messages(?:\/(?:partial|complete))?$/;
const ANY_JSON = /^(?:values|custom)$/;

/** Converts a server-sent event to a typed event. Validates only the type of the data, not its fields. */
export function agentEventOf<Values>({ name, data: text, id }: ServerSentEvent): AgentEvent<Values> {
  const [kind = '', ...namespace] = name.split('|');
  const common = { name, namespace, id: id === '' ? undefined : id };
  const data = parseJson(text);
  const textOrData = data === undefined ? text : data;
  if (kind === 'error') return { event: 'error', data: runErrorOf(textOrData), ...common };
  const isMalformed =
    (OBJECT.test(kind) && !isObject(data)) ||
    (LIST.test(kind) && !Array.isArray(data)) ||
    (ANY_JSON.test(kind) && data === undefined);
  if (isMalformed) return { event: 'malformed', data: text, ...common };
  // The data of `end` may be empty.
  const isKnown = [OBJECT, LIST, ANY_JSON, /^end$/].some((kinds) => kinds.test(kind));
  return { event: isKnown ? kind : 'other', data: textOrData, ...common } as AgentEvent<Values>;
}

/** Returns an error as an object. Some servers send the error as text, or encode it as JSON in `message`. */
export function runErrorOf(data: unknown): RunError {
  if (!isObject(data)) return { message: typeof data === 'string' ? data : JSON.stringify(data) };
  const inner = typeof data.message === 'string' ? parseJson(data.message) : undefined;
  return isObject(inner) && typeof inner.error === 'string' ? inner : data;
}
