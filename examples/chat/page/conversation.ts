import { type Message, messageOf, outputText } from './message.ts';
import { checkpointOf, fieldsOf, stringOf, type ThreadState } from './protocol.ts';

/** How a call ended: one that the reader has declined did nothing. */
export type CallOutcome = 'complete' | 'failed' | 'declined';

/** A call of a tool, by root or by a subagent. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly status: 'running' | CallOutcome;
  /** What it has answered, or has so far. */
  readonly output: string;
  /** What it was done with, where that is something else than it was called with. */
  readonly doneWith?: unknown;
}

/** A question that the run waits for the answer of. */
export interface InputRequest {
  readonly id: string;
  readonly namespace: readonly string[];
  readonly payload: unknown;
}

export interface RunState {
  /** `starting`: asked for, and not heard of yet. */
  readonly status: 'idle' | 'starting' | 'running' | 'completed' | 'failed' | 'interrupted';
  readonly id?: string | undefined;
  /** Why it has failed, or was interrupted. */
  readonly error?: string | undefined;
}

/** A thread as the page knows it: what its newest state says, and what has come since. */
export interface Conversation {
  readonly messages: ReadonlyMap<string, Message>;
  /** The messages of the newest state. */
  readonly order: readonly string[];
  /** Those that stream, and are in no state yet. */
  readonly streamed: readonly string[];
  /** Those that never came into a state, by the message that they follow. */
  readonly cut: ReadonlyMap<string, readonly string[]>;
  /** By message: the run that brought it. */
  readonly runs: ReadonlyMap<string, string>;
  /** By message: how the last run ended that got no further than it. */
  readonly ends: ReadonlyMap<string, RunState>;
  readonly calls: ReadonlyMap<string, ToolCall>;
  /** Messages of a subagent, by the call that it works for. */
  readonly agents: ReadonlyMap<string, readonly string[]>;
  readonly requests: readonly InputRequest[];
  readonly run: RunState;
  /** The newest checkpoint. */
  readonly checkpointId: string | undefined;
  /** Nodes that are due; those of a run that was cut wait for somebody to go on with it. */
  readonly next: readonly string[];
  readonly reading: Reading;
}

/** Where in the events of the thread the page is. */
interface Reading {
  /** The checkpoint of the state that was loaded: states that are older say nothing new. */
  readonly base: string;
  /** The checkpoint of the state that comes next, or has come last. */
  readonly checkpoint: string;
  /** The last message of the state that has come last. */
  readonly last: string;
  /** The run that this state is of. */
  readonly runId: string | undefined;
  /** The call that a subagent works for, by its namespace. */
  readonly owners: ReadonlyMap<string, string>;
  /** The message that streams in a namespace. */
  readonly open: ReadonlyMap<string, string>;
}

/** A conversation that is being made, which nobody has yet. */
export type Draft<Kept> = {
  -readonly [Key in keyof Kept]: Kept[Key] extends ReadonlyMap<infer Name, infer Value>
    ? Map<Name, Value>
    : Key extends 'reading'
      ? Draft<Kept[Key]>
      : Kept[Key];
};

export const EMPTY: Conversation = {
  messages: new Map(),
  order: [],
  streamed: [],
  cut: new Map(),
  runs: new Map(),
  ends: new Map(),
  calls: new Map(),
  agents: new Map(),
  requests: [],
  run: { status: 'idle' },
  checkpointId: undefined,
  next: [],
  reading: { base: '', checkpoint: '', last: '', runId: undefined, owners: new Map(), open: new Map() },
};

/** The conversation as this state has it; activity that the state does not tell of stays known. */
export function withState(conversation: Conversation, state: ThreadState): Conversation {
  const draft = draftOf(conversation);
  const id = checkpointOf(state) ?? '';
  draft.order = take(draft, state.values.messages ?? [], undefined);
  draft.streamed = draft.streamed.filter((streamed) => !draft.order.includes(streamed));
  draft.next = state.next;
  draft.checkpointId = id;
  draft.requests = state.tasks.flatMap(({ interrupts = [] }) =>
    interrupts.flatMap(({ id: interruptId, value }) =>
      interruptId === undefined ? [] : [{ id: interruptId, namespace: [], payload: value }],
    ),
  );
  draft.reading.base = id;
  draft.reading.last = draft.order.at(-1) ?? '';
  const runId = stringOf(state.metadata.run_id);
  draft.reading.runId = runId;
  const last = draft.order.at(-1);
  if (runId !== undefined && last !== undefined && !draft.runs.has(last)) draft.runs.set(last, runId);
  return draft;
}

/** The conversation as it was at an earlier checkpoint, which nothing is under way at. */
export function atState(conversation: Conversation, state: ThreadState): Conversation {
  return { ...withState(conversation, state), streamed: [], cut: new Map(), requests: [], run: { status: 'idle' } };
}

/** What was said, before the server has heard of it. */
export function withQuestion(conversation: Conversation, id: string, text: string): Conversation {
  const draft = draftOf(conversation);
  draft.messages.set(id, { id, role: 'human', blocks: [{ kind: 'text', text }], state: 'complete' });
  // Of a message that is said anew, what followed it is left behind.
  const place = draft.order.indexOf(id);
  draft.order = [...(place === -1 ? draft.order : draft.order.slice(0, place)), id];
  draft.streamed = [];
  return draft;
}

/** The conversation without what was said, which the server did not take; what has come meanwhile stays. */
export function withoutQuestion(
  now: Conversation,
  asked: Conversation,
  before: Conversation,
  id: string,
): Conversation {
  if (now === asked) return before;
  const draft = draftOf(now);
  const message = before.messages.get(id);
  if (message === undefined) draft.messages.delete(id);
  else draft.messages.set(id, message);
  if (now.order === asked.order) draft.order = before.order;
  if (now.streamed === asked.streamed) draft.streamed = before.streamed;
  if (now.run === asked.run) draft.run = before.run;
  return draft;
}

export function withRun(conversation: Conversation, run: RunState): Conversation {
  return { ...conversation, run };
}

/** Whether the agent is at work. */
export function isBusy({ run }: Conversation): boolean {
  return run.status === 'starting' || run.status === 'running';
}

/** What a next conversation is made of, in pieces of its own. */
export function draftOf(conversation: Conversation): Draft<Conversation> {
  const { messages, cut, runs, ends, calls, agents, reading } = conversation;
  return {
    ...conversation,
    messages: new Map(messages),
    cut: new Map(cut),
    runs: new Map(runs),
    ends: new Map(ends),
    calls: new Map(calls),
    agents: new Map(agents),
    reading: { ...reading, owners: new Map(reading.owners), open: new Map(reading.open) },
  };
}

/**
 * Keeps the messages of a state, with what they say of calls; those that were not known are this run's. What an old state says of a message
 * that is known has been said anew since.
 */
export function take(
  draft: Draft<Conversation>,
  messages: readonly unknown[],
  runId: string | undefined,
  isOld = false,
): string[] {
  return messages.flatMap((given) => {
    const fields = fieldsOf(given);
    const known = draft.messages.get(stringOf(fields.id) ?? '');
    // A replay brings each message once for every state that has it: those that are known are not read again.
    if (isOld && known?.state === 'complete') return [known.id];
    const read = messageOf(fields);
    if (read === undefined) return [];
    if (runId !== undefined && known === undefined && !draft.runs.has(read.id)) draft.runs.set(read.id, runId);
    draft.messages.set(read.id, read);
    const callId = stringOf(fields.tool_call_id);
    if (callId === undefined) return [read.id];
    const call = draft.calls.get(callId) ?? { id: callId, name: stringOf(fields.name) ?? '', input: undefined };
    draft.calls.set(callId, { ...call, ...resultOf(fields) });
    return [read.id];
  });
}

/** How a call ended that this is the output of. */
export function resultOf(output: unknown): Pick<ToolCall, 'output' | 'doneWith'> & { readonly status: CallOutcome } {
  const { input } = fieldsOf(fieldsOf(output).artifact);
  return { status: statusOf(output), output: outputText(output), doneWith: input };
}

function statusOf(output: unknown): CallOutcome {
  const { status, artifact } = fieldsOf(output);
  if (status === 'error') return 'failed';
  return fieldsOf(artifact).declined === true ? 'declined' : 'complete';
}
