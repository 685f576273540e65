import type { ServerSentEvent } from '../http/event-stream.ts';
import { isRecord } from './record.ts';

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

/** What every event of a thread has. */
interface OfThread<Method extends string, Data> {
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

interface OfMessage<Event extends string> {
  readonly event: Event;
  /** Of the call of the model, where the server tells; not the run of the agent. */
  readonly run_id?: string;
  readonly [field: string]: unknown;
}

export type MessageData =
  | (OfMessage<'message-start'> & {
      readonly id: string;
      /** @default 'ai' */
      readonly role?: 'ai' | 'human' | 'system' | (string & {});
      readonly metadata?: Readonly<Record<string, unknown>>;
    })
  | (OfMessage<'content-block-start'> & { readonly index: number; readonly content: ContentBlock })
  | (OfMessage<'content-block-delta'> & { readonly index: number; readonly delta: BlockDelta })
  | (OfMessage<'content-block-finish'> & { readonly index: number; readonly content: ContentBlock })
  | (OfMessage<'message-finish'> & { readonly usage?: MessageUsage | null; readonly reason?: string })
  | (OfMessage<'error'> & { readonly message: string; readonly code?: string });

interface OfTool<Event extends string> {
  readonly event: Event;
  readonly tool_call_id: string;
  readonly [field: string]: unknown;
}

export type ToolData =
  | (OfTool<'tool-started'> & { readonly tool_name: string; readonly input?: unknown })
  | (OfTool<'tool-output-delta'> & { readonly delta: string })
  | (OfTool<'tool-finished'> & { readonly output?: unknown })
  | (OfTool<'tool-error'> & { readonly message: string; readonly code?: string });

export type LifecycleEvent = OfThread<'lifecycle', LifecycleData>;
/** A piece of a message of a model; see `MessageAssembler`. */
export type MessageEvent = OfThread<'messages', MessageData>;
/** A call of a tool begins, goes on or has ended. */
export type ToolEvent = OfThread<'tools', ToolData>;
/** The whole state after a step. */
export type StateEvent<Values> = OfThread<'values', Values>;
/** What a node has changed; `params.node` is its name. */
export type StateUpdateEvent = OfThread<'updates', Readonly<Record<string, unknown>>>;
/** A state was kept, from which a run can start. */
export type CheckpointEvent = OfThread<
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
export type TaskEvent = OfThread<'tasks', unknown>;
/** What the graph itself writes, and what the server tells beside it: see `missedEvents`. */
export type ThreadCustomEvent = OfThread<
  'custom',
  { readonly name?: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** The run stops until it is answered: `threads.respond`. */
export type InputRequestedEvent = OfThread<
  'input.requested',
  { readonly interrupt_id: string; readonly payload?: unknown; readonly [field: string]: unknown }
>;
/** An event that this version does not know; `name` is its method. */
export type OtherThreadEvent = OfThread<'other', unknown>;
/** What is no event: `params.data` is its text. */
export type MalformedThreadEvent = OfThread<'malformed', string>;

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

/** What data has to be where more than JSON is asked for. */
const FORMS: Readonly<Record<Exclude<ThreadEvent['method'], 'other' | 'malformed'>, (data: unknown) => boolean>> = {
  lifecycle: (data) => hasTexts(data, 'event'),
  messages: (data) => hasTexts(data, 'event') && MESSAGE_FORMS[data.event]?.(data) === true,
  tools: (data) => hasTexts(data, 'event', 'tool_call_id') && TOOL_FORMS[data.event]?.(data) === true,
  values: () => true,
  updates: isRecord,
  checkpoints: (data) => hasTexts(data, 'id'),
  tasks: () => true,
  custom: isRecord,
  'input.requested': (data) => hasTexts(data, 'interrupt_id'),
};

type Forms = Readonly<Record<string, ((data: Record<string, unknown>) => boolean) | undefined>>;

const MESSAGE_FORMS: Forms = {
  __proto__: null as never,
  'message-start': (data) => hasTexts(data, 'id'),
  'content-block-start': ({ index, content }) => isIndex(index) && hasTexts(content, 'type'),
  'content-block-delta': ({ index, delta }) => isIndex(index) && isDelta(delta),
  'content-block-finish': ({ index, content }) => isIndex(index) && hasTexts(content, 'type'),
  'message-finish': ({ usage }) => usage === undefined || usage === null || isRecord(usage),
  error: (data) => hasTexts(data, 'message'),
};

const TOOL_FORMS: Forms = {
  __proto__: null as never,
  'tool-started': (data) => hasTexts(data, 'tool_name'),
  'tool-output-delta': (data) => hasTexts(data, 'delta'),
  'tool-finished': () => true,
  'tool-error': (data) => hasTexts(data, 'message'),
};

/**
 * What an event as it came stands for. One that is known by its method but not in its form, and one within `messages` or `tools`
 * that is not known, is an `other`: what has a type holds what the type says.
 */
export function threadEventOf<Values>({ name, data: text, id, hasOwnId }: ServerSentEvent): ThreadEvent<Values> {
  const sent = parsed(text);
  if (!isRecord(sent) || typeof sent.method !== 'string' || !isRecord(sent.params))
    return { method: 'malformed', name, ...(hasOwnId && idOf(id)), params: { namespace: [], data: text } };
  const { params, method, event_id, seq, ...rest } = sent;
  const form = Object.hasOwn(FORMS, method) ? FORMS[method as keyof typeof FORMS] : undefined;
  const { namespace, timestamp, node, run_id, ...others } = params;
  return {
    ...rest,
    method: form?.(params.data) === true ? method : 'other',
    name: method,
    ...idOf(event_id),
    ...(Number.isSafeInteger(seq) && (seq as number) >= 0 && { seq }),
    params: {
      ...others,
      ...(typeof timestamp === 'number' && { timestamp }),
      ...(typeof node === 'string' && { node }),
      ...(typeof run_id === 'string' && { run_id }),
      namespace: Array.isArray(namespace) ? namespace.map(String) : [],
    },
  } as unknown as ThreadEvent<Values>;
}

/** Which events a reader who was too slow has not been sent, by their `seq`: those behind `after` and ahead of `before`. */
export interface MissedEvents {
  readonly after: number;
  readonly before: number;
}

/** What was missed ahead of this event, where a server tells of that by it; undefined for any other event. */
export function missedEvents(event: ThreadEvent<unknown>): MissedEvents | undefined {
  if (event.method !== 'custom' || event.params.data.name !== 'missed_events') return undefined;
  const { payload } = event.params.data;
  if (!isRecord(payload) || typeof payload.after !== 'number' || typeof payload.before !== 'number') return undefined;
  return { after: payload.after, before: payload.before };
}

function idOf(id: unknown): { readonly event_id?: string } {
  if (typeof id === 'number') return { event_id: String(id) };
  return typeof id === 'string' && id !== '' ? { event_id: id } : {};
}

function isIndex(value: unknown): boolean {
  return typeof value === 'number';
}

function isDelta(delta: unknown): boolean {
  if (!isRecord(delta)) return false;
  if (delta.type === 'block-delta') return isRecord(delta.fields);
  if (delta.type === 'text-delta') return typeof delta.text === 'string';
  if (delta.type === 'reasoning-delta') return typeof delta.reasoning === 'string';
  return delta.type === 'data-delta' && typeof delta.data === 'string';
}

function hasTexts<Name extends string>(value: unknown, ...names: readonly Name[]): value is Record<Name, string> {
  return isRecord(value) && names.every((name) => typeof value[name] === 'string');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
