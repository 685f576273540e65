import { type Block, blockOf, grown, type Message, messageOf, outputText } from './message.ts';
import { checkpointOf, type Fields, fieldsOf, type ProtocolEvent, stringOf, type ThreadState } from './protocol.ts';

/** A call of a tool, by root or by a subagent. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly status: 'running' | 'complete' | 'failed';
  /** What it has answered, or has so far. */
  readonly output: string;
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
  /** The call that a subagent works for, by its namespace. */
  readonly owners: ReadonlyMap<string, string>;
  /** The message that streams in a namespace. */
  readonly open: ReadonlyMap<string, string>;
}

type Draft<Kept> = {
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
  calls: new Map(),
  agents: new Map(),
  requests: [],
  run: { status: 'idle' },
  checkpointId: undefined,
  next: [],
  reading: { base: '', checkpoint: '', last: '', owners: new Map(), open: new Map() },
};

/** The conversation after these events, in the order of the thread. Those that the page knows the outcome of change nothing. */
export function withEvents(conversation: Conversation, events: readonly ProtocolEvent[]): Conversation {
  const draft = draftOf(conversation);
  for (const { method, params } of events) {
    const data = fieldsOf(params.data);
    if (method === 'lifecycle') lifecycle(draft, params.namespace, data, params.run_id);
    else if (method === 'messages') message(draft, params.namespace, data, params.run_id);
    else if (method === 'tools') tool(draft, params.namespace, data);
    else if (method === 'input.requested') request(draft, params.namespace, data);
    else if (method === 'checkpoints' && params.namespace.length === 0)
      draft.reading.checkpoint = stringOf(data.id) ?? '';
    else if (method === 'values' && params.namespace.length === 0) values(draft, data, params.run_id);
  }
  return draft;
}

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

export function withRun(conversation: Conversation, run: RunState): Conversation {
  return { ...conversation, run };
}

/** Whether the agent is at work. */
export function isBusy({ run }: Conversation): boolean {
  return run.status === 'starting' || run.status === 'running';
}

function draftOf(conversation: Conversation): Draft<Conversation> {
  const { messages, cut, runs, calls, agents, reading } = conversation;
  return {
    ...conversation,
    messages: new Map(messages),
    cut: new Map(cut),
    runs: new Map(runs),
    calls: new Map(calls),
    agents: new Map(agents),
    reading: { ...reading, owners: new Map(reading.owners), open: new Map(reading.open) },
  };
}

function lifecycle(
  draft: Draft<Conversation>,
  namespace: readonly string[],
  { event, error, cause }: Fields,
  runId: string | undefined,
): void {
  if (namespace.length > 0) {
    const callId = stringOf(fieldsOf(cause).tool_call_id);
    if (event === 'started' && callId !== undefined) own(draft, namespace, callId);
    return;
  }
  if (event === 'running') {
    draft.run = { status: 'running', id: runId };
    draft.requests = [];
    draft.reading.open.clear();
  } else if (event === 'completed' || event === 'failed' || event === 'interrupted') {
    draft.run = { status: event, id: runId, error: stringOf(error) };
    leaveOpen(draft);
  }
}

/** What streamed when its run ended stays as it is, after the message that it followed. */
function leaveOpen(draft: Draft<Conversation>): void {
  for (const [id, message] of draft.messages) {
    if (message.state === 'open') draft.messages.set(id, { ...message, state: 'cut' });
  }
  if (draft.streamed.length > 0 && draft.reading.last !== '') draft.cut.set(draft.reading.last, draft.streamed);
  draft.streamed = [];
  draft.reading.open.clear();
}

function message(
  draft: Draft<Conversation>,
  namespace: readonly string[],
  data: Fields,
  runId: string | undefined,
): void {
  const { owners, open } = draft.reading;
  const place = JSON.stringify([namespace, data.run_id]);
  if (data.event === 'message-start') {
    const id = stringOf(data.id);
    const owner = ownerOf(owners, namespace);
    if (id === undefined || (owner === undefined && namespace.length > 1)) return;
    if (runId !== undefined) draft.runs.set(id, runId);
    if (draft.messages.get(id)?.state === 'complete') return;
    open.set(place, id);
    draft.messages.set(id, { id, role: stringOf(data.role) ?? 'ai', blocks: [], state: 'open' });
    if (owner === undefined) draft.streamed = [...draft.streamed.filter((other) => other !== id), id];
    else draft.agents.set(owner, [...(draft.agents.get(owner) ?? []).filter((other) => other !== id), id]);
    return;
  }
  const current = draft.messages.get(open.get(place) ?? '');
  // A state that was loaded meanwhile may have all of it.
  if (current?.state !== 'open') return;
  draft.messages.set(current.id, withPiece(current, data));
  if (data.event === 'message-finish' || data.event === 'error') open.delete(place);
}

function withPiece(message: Message, { event, index, content, delta, message: error }: Fields): Message {
  switch (event) {
    case 'content-block-start':
    case 'content-block-finish':
      return { ...message, blocks: replaced(message.blocks, index, () => blockOf(content)) };
    case 'content-block-delta':
      return { ...message, blocks: replaced(message.blocks, index, (block) => grown(block, fieldsOf(delta))) };
    case 'message-finish':
      return { ...message, state: 'complete' };
    case 'error':
      return { ...message, state: 'cut', error: stringOf(error) ?? 'The message was cut.' };
    default:
      return message;
  }
}

/** Blocks that one message may have; the others are passed over. */
const BLOCKS_MAX = 1_000;

function replaced(
  blocks: readonly Block[],
  index: unknown,
  make: (block: Block | undefined) => Block,
): readonly Block[] {
  if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= BLOCKS_MAX) return blocks;
  const made = [...blocks];
  while (made.length < (index as number)) made.push({ kind: 'other' });
  made[index as number] = make(made[index as number]);
  return made;
}

function tool(draft: Draft<Conversation>, namespace: readonly string[], data: Fields): void {
  const id = stringOf(data.tool_call_id);
  if (id === undefined) return;
  const known = draft.calls.get(id);
  const call: ToolCall = known ?? { id, name: '', input: undefined, status: 'running', output: '' };
  switch (data.event) {
    case 'tool-started': {
      const name = stringOf(data.tool_name) ?? call.name;
      if (name === 'task') own(draft, namespace, id);
      if (known === undefined || known.status === 'running')
        draft.calls.set(id, { ...call, name, input: data.input ?? call.input });
      return;
    }
    case 'tool-output-delta':
      if (call.status === 'running') draft.calls.set(id, { ...call, output: call.output + outputText(data.delta) });
      return;
    case 'tool-finished':
      draft.calls.set(id, { ...call, status: statusOf(data.output), output: outputText(data.output) });
      return;
    case 'tool-error':
      draft.calls.set(id, { ...call, status: 'failed', output: stringOf(data.message) ?? 'It failed.' });
      return;
  }
}

function request(draft: Draft<Conversation>, namespace: readonly string[], data: Fields): void {
  const id = stringOf(data.interrupt_id);
  if (id === undefined || draft.requests.some((known) => known.id === id)) return;
  draft.requests = [...draft.requests, { id, namespace, payload: data.payload }];
}

function values(draft: Draft<Conversation>, data: Fields, runId: string | undefined): void {
  if (!Array.isArray(data.messages)) return;
  const { base, checkpoint } = draft.reading;
  // Ids of checkpoints are in the order of time.
  const isOld = checkpoint < base;
  const order = take(draft, data.messages, runId, isOld);
  draft.reading.last = order.at(-1) ?? '';
  const isIn = new Set(order);
  draft.streamed = draft.streamed.filter((id) => !isIn.has(id));
  if (isOld) return;
  draft.order = order;
  draft.checkpointId = checkpoint === '' ? draft.checkpointId : checkpoint;
  draft.next = [];
}

/**
 * Keeps the messages of a state, with what they say of calls; those that were not known are this run's. What an old state says of a message
 * that is known has been said anew since.
 */
function take(
  draft: Draft<Conversation>,
  messages: readonly unknown[],
  runId: string | undefined,
  isOld = false,
): string[] {
  return messages.flatMap((given) => {
    const fields = fieldsOf(given);
    const read = messageOf(fields);
    if (read === undefined) return [];
    if (runId !== undefined && !draft.messages.has(read.id) && !draft.runs.has(read.id)) draft.runs.set(read.id, runId);
    if (isOld && draft.messages.get(read.id)?.state === 'complete') return [read.id];
    draft.messages.set(read.id, read);
    const callId = stringOf(fields.tool_call_id);
    if (callId === undefined) return [read.id];
    const call = draft.calls.get(callId) ?? { id: callId, name: stringOf(fields.name) ?? '', input: undefined };
    draft.calls.set(callId, { ...call, status: statusOf(fields), output: outputText(fields) });
    return [read.id];
  });
}

function statusOf(output: unknown): 'complete' | 'failed' {
  return fieldsOf(output).status === 'error' ? 'failed' : 'complete';
}

function own(draft: Draft<Conversation>, namespace: readonly string[], callId: string): void {
  draft.reading.owners.set(JSON.stringify(namespace), callId);
  if (!draft.agents.has(callId)) draft.agents.set(callId, []);
}

/** The innermost subagent that a namespace is within. */
function ownerOf(owners: ReadonlyMap<string, string>, namespace: readonly string[]): string | undefined {
  for (let depth = namespace.length; depth > 0; depth--) {
    const owner = owners.get(JSON.stringify(namespace.slice(0, depth)));
    if (owner !== undefined) return owner;
  }
  return undefined;
}
