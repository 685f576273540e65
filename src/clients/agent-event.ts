import { isObject } from '../base/options.ts';
import type { ServerSentEvent } from '../http/event-stream.ts';
import type { Interrupt, ThreadTask } from './thread.ts';

/** Fields that every event of a stream has. */
export interface AgentEventOf<Event extends string, Data> {
  readonly event: Event;
  readonly data: Data;
  /** The name as it came: `updates|researcher:1`. */
  readonly name: string;
  /** Where in the graph it is from: empty for the graph itself, the names of subgraphs with their task else. */
  readonly namespace: readonly string[];
  /** By which the stream goes on after a break; undefined where the server gives none. */
  readonly id: string | undefined;
}

/** A message of a model, a user or a tool, as far as it has come. */
export interface AgentMessage {
  readonly type?: 'human' | 'ai' | 'AIMessageChunk' | 'tool' | 'system' | (string & {});
  readonly id?: string | null;
  readonly content?: string | readonly unknown[];
  readonly [field: string]: unknown;
}

/** The first event. */
export type MetadataEvent = AgentEventOf<'metadata', { readonly run_id: string; readonly [field: string]: unknown }>;
/** The whole state after a step. */
export type ValuesEvent<Values> = AgentEventOf<'values', Values>;
/** What the nodes of a step have changed, by their names. */
export type UpdatesEvent = AgentEventOf<
  'updates',
  { readonly __interrupt__?: readonly Interrupt[]; readonly [node: string]: unknown }
>;
/** Mode `messages-tuple`: a piece of a message, and what it belongs to. */
export type MessagesEvent = AgentEventOf<
  'messages',
  readonly [message: AgentMessage, metadata: Readonly<Record<string, unknown>>]
>;
/** Mode `messages`: the messages as far as they have come. */
export type MessagesPartialEvent = AgentEventOf<'messages/partial', readonly AgentMessage[]>;
/** Mode `messages`: messages that are whole. */
export type MessagesCompleteEvent = AgentEventOf<'messages/complete', readonly AgentMessage[]>;
/** Mode `messages`: what messages belong to, by their ids. */
export type MessagesMetadataEvent = AgentEventOf<'messages/metadata', Readonly<Record<string, unknown>>>;
/** Mode `events`: a step of anything in the graph. */
export type EventsEvent = AgentEventOf<
  'events',
  { readonly event: string; readonly name?: string; readonly data?: unknown; readonly [field: string]: unknown }
>;
/** A task that begins, or has ended. */
export type TasksEvent = AgentEventOf<'tasks', ThreadTask>;
export type CheckpointsEvent = AgentEventOf<'checkpoints', Readonly<Record<string, unknown>>>;
export type DebugEvent = AgentEventOf<'debug', Readonly<Record<string, unknown>>>;
/** What the graph itself writes. */
export type CustomEvent = AgentEventOf<'custom', unknown>;
/** A call of a tool that begins, goes on or has ended. */
export type ToolsEvent = AgentEventOf<'tools', Readonly<Record<string, unknown>>>;
/** The run has failed. When the stream has come to its end it throws a RunFailedError. */
export type ErrorEvent = AgentEventOf<'error', RunError>;
/** Addresses for feedback by their keys; see `submitFeedback`. */
export type FeedbackEvent = AgentEventOf<'feedback', Readonly<Record<string, string>>>;
/** The last event of some servers. */
export type EndEvent = AgentEventOf<'end', unknown>;
/** An event that this version does not know; its data is text where it is no JSON. */
export type OtherEvent = AgentEventOf<'other', unknown>;
/** An event that is known, but whose data is no JSON, or not what it has to be: `data` is its text. */
export type MalformedEvent = AgentEventOf<'malformed', string>;

/** An event of a run's stream; `event` tells which. */
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

/** What a server says of a run that has failed. */
export interface RunError {
  /** The name of the error. */
  readonly error?: string;
  readonly message?: string;
  readonly [field: string]: unknown;
}

const KNOWN: ReadonlySet<string> = new Set<AgentEvent['event']>([
  'metadata',
  'values',
  'updates',
  'messages',
  'messages/partial',
  'messages/complete',
  'messages/metadata',
  'events',
  'tasks',
  'checkpoints',
  'debug',
  'custom',
  'tools',
  'error',
  'feedback',
  'end',
]);

/** What an event as it came stands for. Its data is not checked beyond being JSON. */
export function agentEventOf<Values>({ name, data: text, id }: ServerSentEvent): AgentEvent<Values> {
  const [kind = '', ...namespace] = name.split('|');
  const told = { name, namespace, id: id === '' ? undefined : id };
  const data = parsed(text);
  const isKnown = KNOWN.has(kind);
  if (kind === 'error') return { event: 'error', data: runErrorOf(data === undefined ? text : data), ...told };
  // The last event of a stream may say nothing; these two are read by the stream itself.
  const isBroken = kind === 'metadata' || kind === 'feedback' ? !isObject(data) : data === undefined && kind !== 'end';
  if (isKnown && isBroken) return { event: 'malformed', data: text, ...told } as AgentEvent<Values>;
  return { event: isKnown ? kind : 'other', data: data === undefined ? text : data, ...told } as AgentEvent<Values>;
}

/** An error as an object; some servers say it in text alone, or as the text of such an object. */
export function runErrorOf(data: unknown): RunError {
  if (!isObject(data)) return { message: typeof data === 'string' ? data : JSON.stringify(data) };
  const inner = typeof data.message === 'string' ? parsed(data.message) : undefined;
  return isObject(inner) && typeof inner.error === 'string' ? inner : data;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
