import { isObject } from '../../../base/options.ts';
import type { ServerSentEvent } from '../../../http/event-stream.ts';
import { parseJson } from '../../errors.ts';
import type { Interrupt, ThreadTask } from '../thread.ts';

/** Fields that every event of a stream has. */
export interface AgentEventOf<Event extends string, Data> {
  readonly event: Event;
  readonly data: Data;
  /** Name of the server-sent event, for example `updates|researcher:1`. */
  readonly name: string;
  /** Path of the subgraph that sent the event. Empty for the graph itself. */
  readonly namespace: readonly string[];
  /** Id for continuing the stream after this event. Undefined if the server sends none. */
  readonly id: string | undefined;
}

/** A message of a model, a user or a tool, which may be incomplete. */
export interface AgentMessage {
  readonly type?: 'human' | 'ai' | 'AIMessageChunk' | 'tool' | 'system' | (string & {});
  readonly id?: string | null;
  readonly content?: string | readonly unknown[];
  readonly [field: string]: unknown;
}

/** The first event. */
export type MetadataEvent = AgentEventOf<'metadata', { readonly run_id: string; readonly [field: string]: unknown }>;
/** The complete state after a step. */
export type ValuesEvent<Values> = AgentEventOf<'values', Values>;
/** State changes in a step, by node name. */
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
/** Mode `messages`: metadata of messages by their ids. */
export type MessagesMetadataEvent = AgentEventOf<'messages/metadata', Readonly<Record<string, unknown>>>;
/** Mode `events`: a step of a component of the graph. */
export type EventsEvent = AgentEventOf<
  'events',
  { readonly event: string; readonly name?: string; readonly data?: unknown; readonly [field: string]: unknown }
>;
/** The start or end of a task. */
export type TasksEvent = AgentEventOf<'tasks', ThreadTask>;
export type CheckpointsEvent = AgentEventOf<'checkpoints', Readonly<Record<string, unknown>>>;
export type DebugEvent = AgentEventOf<'debug', Readonly<Record<string, unknown>>>;
/** An event that the graph writes. */
export type CustomEvent = AgentEventOf<'custom', unknown>;
/** The start, progress or end of a tool call. */
export type ToolsEvent = AgentEventOf<'tools', Readonly<Record<string, unknown>>>;
/** The error of the run. The stream throws it as a RunFailedError at its end. */
export type ErrorEvent = AgentEventOf<'error', RunError>;
/** Feedback URLs by their keys. See `submitFeedback`. */
export type FeedbackEvent = AgentEventOf<'feedback', Readonly<Record<string, string>>>;
/** The last event. Only some servers send it. */
export type EndEvent = AgentEventOf<'end', unknown>;
/** An event that this version does not know. Its data is text if it is not JSON. */
export type OtherEvent = AgentEventOf<'other', unknown>;
/** A known event with data that is not JSON or has an unexpected type. `data` is the original text. */
export type MalformedEvent = AgentEventOf<'malformed', string>;

/** An event of a run's stream. `event` is its type. */
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

/** Matches the types of known events. */
const KNOWN =
  /^(?:metadata|values|updates|messages(?:\/(?:partial|complete|metadata))?|events|tasks|checkpoints|debug|custom|tools|error|feedback|end)$/;

/** Converts a server-sent event. Checks only the type of its data. */
export function agentEventOf<Values>({ name, data: text, id }: ServerSentEvent): AgentEvent<Values> {
  const [kind = '', ...namespace] = name.split('|');
  const common = { name, namespace, id: id === '' ? undefined : id };
  const data = parseJson(text);
  const isKnown = KNOWN.test(kind);
  if (kind === 'error') return { event: 'error', data: runErrorOf(data === undefined ? text : data), ...common };
  // The last event of a stream may be empty. RunStream needs objects for `metadata` and `feedback`.
  const isBroken = kind === 'metadata' || kind === 'feedback' ? !isObject(data) : data === undefined && kind !== 'end';
  if (isKnown && isBroken) return { event: 'malformed', data: text, ...common } as AgentEvent<Values>;
  return { event: isKnown ? kind : 'other', data: data === undefined ? text : data, ...common } as AgentEvent<Values>;
}

/** Returns an error as an object. Some servers send text, or an object as text. */
export function runErrorOf(data: unknown): RunError {
  if (!isObject(data)) return { message: typeof data === 'string' ? data : JSON.stringify(data) };
  const inner = typeof data.message === 'string' ? parseJson(data.message) : undefined;
  return isObject(inner) && typeof inner.error === 'string' ? inner : data;
}
