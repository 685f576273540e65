import { isObject } from '../../../config/checker.ts';
import { parseJson } from '../../errors.ts';
import type { ServerSentEvent } from '../../event-stream.ts';
import type { Interrupt, ThreadTask } from '../thread.ts';

/** Fields of every event in a run's stream. */
export interface AgentEventOf<Event extends string, Data> {
  readonly event: Event;
  readonly data: Data;
  /** Name of the server-sent event, for example `updates|researcher:1`. */
  readonly name: string;
  /** Path of the subgraph that sent the event, or an empty list for the main graph. */
  readonly namespace: readonly string[];
  /** Id of the event, if the server sends one. To resume a stream after this event, pass the id as `lastEventId`. */
  readonly id: string | undefined;
}

/** A complete or partial message from a model, user or tool. */
export interface AgentMessage {
  readonly type?: 'human' | 'ai' | 'AIMessageChunk' | 'tool' | 'system' | (string & {});
  readonly id?: string | null;
  readonly content?: string | readonly unknown[];
  readonly [field: string]: unknown;
}

/** The first event of a stream, which contains the run's id. */
export type MetadataEvent = AgentEventOf<'metadata', { readonly run_id: string; readonly [field: string]: unknown }>;
/** An event with the complete state after a step of the graph. */
export type ValuesEvent<Values> = AgentEventOf<'values', Values>;
/** An event with the state changes of one step, keyed by node name. */
export type UpdatesEvent = AgentEventOf<
  'updates',
  { readonly __interrupt__?: readonly Interrupt[]; readonly [node: string]: unknown }
>;
/** An event with a message chunk and its metadata, sent in the stream mode `messages-tuple`. */
export type MessagesEvent = AgentEventOf<
  'messages',
  readonly [message: AgentMessage, metadata: Readonly<Record<string, unknown>>]
>;
/** An event with partial messages, sent in the stream mode `messages`. */
export type MessagesPartialEvent = AgentEventOf<'messages/partial', readonly AgentMessage[]>;
/** An event with complete messages, sent in the stream mode `messages`. */
export type MessagesCompleteEvent = AgentEventOf<'messages/complete', readonly AgentMessage[]>;
/** An event with message metadata, keyed by message id, sent in the stream mode `messages`. */
export type MessagesMetadataEvent = AgentEventOf<'messages/metadata', Readonly<Record<string, unknown>>>;
/** An event with an event from a component of the graph, sent in the stream mode `events`. */
export type EventsEvent = AgentEventOf<
  'events',
  { readonly event: string; readonly name?: string; readonly data?: unknown; readonly [field: string]: unknown }
>;
/** An event that reports the start or end of a task. */
export type TasksEvent = AgentEventOf<'tasks', ThreadTask>;
/** An event with a new checkpoint of the thread. */
export type CheckpointsEvent = AgentEventOf<'checkpoints', Readonly<Record<string, unknown>>>;
/** An event with debug information about a step of the graph. */
export type DebugEvent = AgentEventOf<'debug', Readonly<Record<string, unknown>>>;
/** A custom event from the graph. */
export type CustomEvent = AgentEventOf<'custom', unknown>;
/** An event that reports the start, progress or end of a tool call. */
export type ToolsEvent = AgentEventOf<'tools', Readonly<Record<string, unknown>>>;
/** An event that reports that the run failed. The stream throws the error as a RunFailedError when the stream ends. */
export type ErrorEvent = AgentEventOf<'error', RunError>;
/** An event with feedback URLs, keyed by feedback key. To send feedback, pass a URL to `submitFeedback`. */
export type FeedbackEvent = AgentEventOf<'feedback', Readonly<Record<string, string>>>;
/** The last event of a stream. Only some servers send this event. */
export type EndEvent = AgentEventOf<'end', unknown>;
/** An event of an unknown type. Data that is not JSON is returned as text. */
export type OtherEvent = AgentEventOf<'other', unknown>;
/** An event of a known type with invalid data. The field `data` contains the original text. */
export type MalformedEvent = AgentEventOf<'malformed', string>;

/** An event in a run's stream. The field `event` is the type of the event. */
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

// Names of known events, grouped by the type of their data.
const OBJECT = /^(?:metadata|updates|messages\/metadata|events|tasks|checkpoints|debug|tools|feedback)$/;
const LIST = /^messages(?:\/(?:partial|complete))?$/;
const ANY_JSON = /^(?:values|custom)$/;

/** Converts a server-sent event to a typed event. Of the fields of the data, only feedback URLs are validated. */
export function agentEventOf<Values>({ name, data: text, id }: ServerSentEvent): AgentEvent<Values> {
  const [kind = '', ...namespace] = name.split('|');
  const common = { name, namespace, id: id === '' ? undefined : id };
  const data = parseJson(text);
  const textOrData = data === undefined ? text : data;
  // In a stream of JSON-RPC, the type of an event is not the kind of its data.
  const isReply = isObject(data) && data.jsonrpc === '2.0';
  const error = isReply ? data.error : kind === 'error' ? textOrData : undefined;
  if (error !== undefined && error !== null) return { event: 'error', data: runErrorOf(error), ...common };
  const isMalformed =
    (OBJECT.test(kind) && !isObject(data)) ||
    (LIST.test(kind) && !Array.isArray(data)) ||
    (ANY_JSON.test(kind) && data === undefined) ||
    (kind === 'feedback' && Object.values(data as object).some((url) => typeof url !== 'string'));
  if (isMalformed) return { event: 'malformed', data: text, ...common };
  // The data of an `end` event may be empty.
  const isKnown = [OBJECT, LIST, ANY_JSON, /^end$/].some((kinds) => kinds.test(kind));
  return { event: isKnown ? kind : 'other', data: textOrData, ...common } as AgentEvent<Values>;
}

/** Returns an error as an object. Some servers send the error as text or as JSON in `message`. */
export function runErrorOf(data: unknown): RunError {
  if (!isObject(data)) return { message: typeof data === 'string' ? data : JSON.stringify(data) };
  const inner = typeof data.message === 'string' ? parseJson(data.message) : undefined;
  return isObject(inner) && typeof inner.error === 'string' ? inner : data;
}
