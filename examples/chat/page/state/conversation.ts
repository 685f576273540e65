import { checkpointOf, type Fields, fieldsOf, stringOf, type ThreadState } from './client.ts';
import type { ThreadEvent } from './event-stream.ts';
import { type Message, messageOf, outputText, textIn } from './message.ts';
import type { MessageAssembler, StreamedMessage } from './message-assembler.ts';

/** A tool call by the agent or by a subagent. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly status: 'running' | 'complete' | 'failed' | 'declined';
  /** The output that has arrived so far. */
  readonly output: string;
}

/** The agent's request for input. The run waits for the answer. */
export interface InputRequest {
  readonly id: string;
  readonly payload: unknown;
}

export interface RunState {
  /** `starting`: the command has been sent, but no event of the run has arrived. */
  readonly status: 'idle' | 'starting' | 'running' | 'completed' | 'failed' | 'interrupted';
  readonly id?: string | undefined;
  /** Id of the message that the run answers. */
  readonly questionId?: string | undefined;
  /** Why the run failed or was interrupted. */
  readonly error?: string | undefined;
  /**
   * Whether the question was sent from this page. In that case, a state that is older than the run must not hide the
   * question.
   */
  readonly isOwn?: boolean;
}

/** An immutable snapshot of a thread: its newest state, updated by later events. */
export interface Conversation {
  /** All known messages by id: from states, from runs in progress, and from subagents. */
  readonly messages: ReadonlyMap<string, Message>;
  /** Ids of the messages in the newest state, in order. */
  readonly order: readonly string[];
  readonly calls: ReadonlyMap<string, ToolCall>;
  /** Id of the tool call that started each subagent, by the subagent's namespace. */
  readonly subagents: ReadonlyMap<string, string>;
  readonly requests: readonly InputRequest[];
  readonly run: RunState;
  /** How the last run that answered each question ended, by question id. */
  readonly ends: ReadonlyMap<string, RunState>;
  /** Ids of the newest checkpoint and of the run that wrote it. */
  readonly checkpointId: string | undefined;
  readonly stateRunId: string | undefined;
  /**
   * The nodes to run next, according to the newest state. If there are any and no run is in progress, the last run
   * ended early.
   */
  readonly next: readonly string[];
}

/** A question and the agent's answer. */
export interface Turn {
  /** The user's message. Undefined if the thread begins with an answer. */
  readonly question: Message | undefined;
  readonly answer: readonly Message[];
  readonly runId: string | undefined;
  /** How the last run of the question ended, if its events are known. */
  readonly end: RunState | undefined;
}

export const EMPTY: Conversation = {
  messages: new Map(),
  order: [],
  calls: new Map(),
  subagents: new Map(),
  requests: [],
  run: { status: 'idle' },
  ends: new Map(),
  checkpointId: undefined,
  stateRunId: undefined,
  next: [],
};

/** A mutable copy of a conversation, which a function changes and then returns. */
type Draft = {
  -readonly [Key in keyof Conversation]: Conversation[Key] extends ReadonlyMap<infer Name, infer Value>
    ? Map<Name, Value>
    : Conversation[Key];
};

export function isBusy({ run }: Conversation): boolean {
  return run.status === 'starting' || run.status === 'running';
}

/** Whether a run failed or was stopped. A run that waits for input counts as neither failed nor stopped. */
export function isCutShort({ status, error }: RunState): boolean {
  return status === 'failed' || (status === 'interrupted' && error !== undefined);
}

/** Returns the conversation updated by a loaded state. */
export function withState(conversation: Conversation, state: ThreadState): Conversation {
  const draft = draftOf(conversation);
  const { run } = conversation;
  draft.order = (state.values.messages ?? []).flatMap((fields) => addMessage(draft, fields));
  draft.checkpointId = checkpointOf(state);
  draft.stateRunId = stringOf(state.metadata?.run_id);
  const question = conversation.messages.get(run.questionId ?? '');
  if (isBusy(conversation) && run.isOwn && question !== undefined && draft.stateRunId !== run.id) {
    const place = draft.order.indexOf(question.id);
    draft.order = [...(place === -1 ? draft.order : draft.order.slice(0, place)), question.id];
    draft.messages.set(question.id, question);
  }
  draft.next = state.next;
  draft.requests = state.tasks.flatMap(({ interrupts = [] }) =>
    interrupts.flatMap(({ id, value }) => (id === undefined ? [] : [{ id, payload: value }])),
  );
  for (const { id, questionId } of conversation.messages.values()) {
    // Every message of a completed run is in some state. If this state does not contain the message, it belongs to
    // another branch.
    if (questionId !== undefined && draft.ends.get(questionId)?.status === 'completed' && !draft.order.includes(id))
      draft.messages.delete(id);
  }
  return draft;
}

/** Returns the conversation as it was at an earlier checkpoint. */
export function atState(conversation: Conversation, state: ThreadState): Conversation {
  const earlier = withState(conversation, state);
  const messages = new Map([...earlier.messages].filter(([, { questionId }]) => questionId === undefined));
  return { ...earlier, messages, requests: [], run: { status: 'idle' } };
}

/**
 * Returns the conversation with a question that was sent but that the server has not confirmed yet. If the question
 * already exists, its answer is removed.
 */
export function withQuestion(conversation: Conversation, id: string, text: string): Conversation {
  const draft = draftOf(conversation);
  draft.messages.set(id, { id, role: 'human', blocks: [{ type: 'text', text }], state: 'complete' });
  const place = draft.order.indexOf(id);
  draft.order = [...(place === -1 ? draft.order : draft.order.slice(0, place)), id];
  beginRun(draft, { status: 'starting', questionId: id, isOwn: true });
  return draft;
}

/**
 * Returns the conversation updated by these events. The assembler must already have received all earlier events of the
 * thread.
 */
export function withEvents(
  conversation: Conversation,
  events: readonly ThreadEvent[],
  assembler: MessageAssembler,
): Conversation {
  const draft = draftOf(conversation);
  for (const event of events) {
    const { method, params } = event;
    const { namespace, run_id: runId } = params;
    const data = fieldsOf(params.data);
    if (method === 'lifecycle' && namespace.length === 0) addRunEvent(draft, data, runId);
    else if (method === 'lifecycle') addSubagent(draft, namespace, data);
    else if (method === 'messages') addStreamed(draft, assembler.take(event), runId);
    else if (method === 'tools') addToolEvent(draft, namespace, data);
    else if (method === 'input.requested') addRequest(draft, data);
  }
  return draft;
}

/** Returns the turns of the conversation in order. */
export function turnsOf({ messages, order, ends, run, stateRunId }: Conversation): Turn[] {
  const turns: { question: Message | undefined; answer: Message[] }[] = [];
  for (const id of order) {
    const message = messages.get(id);
    if (message?.role === 'human') turns.push({ question: message, answer: [] });
    else if (message?.role === 'ai') {
      if (turns.length === 0) turns.push({ question: undefined, answer: [] });
      turns.at(-1)?.answer.push(message);
    }
  }
  const byQuestion = new Map(turns.map((turn) => [turn.question?.id ?? '', turn]));
  for (const message of messages.values()) {
    if (message.questionId !== undefined && message.role === 'ai')
      byQuestion.get(message.questionId)?.answer.push(message);
  }
  return turns.map(({ question, answer }, index) => {
    const questionId = question?.id ?? '';
    const isLast = index === turns.length - 1;
    const end = isLast && run.questionId === questionId ? run : ends.get(questionId);
    const writtenBy = answer.findLast((message) => message.runId !== undefined)?.runId;
    return { question, answer, runId: end?.id ?? writtenBy ?? (isLast ? stateRunId : undefined), end };
  });
}

/** Returns the status of a tool call. A call without a result counts as running only in the last turn. */
export function callStatus(
  call: ToolCall | undefined,
  conversation: Conversation,
  isLast: boolean,
): ToolCall['status'] | 'waiting' | 'stopped' {
  if (call !== undefined && call.status !== 'running') return call.status;
  if (!isLast) return 'stopped';
  if (isBusy(conversation)) return 'running';
  return conversation.requests.length > 0 ? 'waiting' : 'stopped';
}

/** Returns the text that screen readers announce when the state of the last run changes. */
export function announcementOf(conversation: Conversation): string {
  const { run, requests } = conversation;
  if (requests.length > 0 && !isBusy(conversation)) return 'The agent asks for your decision.';
  if (run.status === 'running') return 'The agent is working.';
  if (run.status === 'failed') return `The answer failed: ${run.error ?? ''}`;
  if (run.status === 'interrupted') return 'The answer was stopped.';
  const answer = turnsOf(conversation).at(-1)?.answer.at(-1);
  return run.status === 'completed' ? `Answer: ${answer === undefined ? '' : textIn(answer)}` : '';
}

function draftOf(conversation: Conversation): Draft {
  const copies = Object.entries(conversation).map(([name, value]) => [
    name,
    value instanceof Map ? new Map(value) : value,
  ]);
  return Object.fromEntries(copies) as Draft;
}

function beginRun(draft: Draft, run: RunState): void {
  const { questionId } = run;
  // The user's answer to a request continues the same turn.
  const isContinued = run.status === 'running' && draft.requests.length > 0;
  if (questionId !== undefined) draft.ends.delete(questionId);
  for (const message of isContinued ? [] : draft.messages.values())
    if (questionId !== undefined && message.questionId === questionId) draft.messages.delete(message.id);
  draft.run = run;
  draft.requests = [];
}

function addRunEvent(draft: Draft, { event, error, question_id }: Fields, id: string | undefined): void {
  if (event === 'running') {
    const questionId = stringOf(question_id) ?? (draft.run.status === 'starting' ? draft.run.questionId : undefined);
    const isOwn = draft.run.isOwn === true && draft.run.questionId === questionId;
    beginRun(draft, { status: 'running', id, questionId, isOwn });
    return;
  }
  // The end of another run is ignored: a waiting run can end while this one is in progress.
  if (draft.run.id !== undefined && draft.run.id !== id) return;
  const { questionId } = draft.run;
  draft.run = { status: event as RunState['status'], id, questionId, error: stringOf(error) };
  if (questionId !== undefined) draft.ends.set(questionId, draft.run);
  for (const [messageId, message] of draft.messages) {
    if (message.state === 'open') draft.messages.set(messageId, { ...message, state: 'cut' });
  }
}

function addSubagent(draft: Draft, namespace: readonly string[], { event, cause }: Fields): void {
  const callId = stringOf(fieldsOf(cause).tool_call_id);
  if (event === 'started' && callId !== undefined) draft.subagents.set(JSON.stringify(namespace), callId);
}

/** Adds a message that is streaming, or replaces it by its longer version. */
function addStreamed(draft: Draft, streamed: StreamedMessage | undefined, runId: string | undefined): void {
  if (streamed === undefined) return;
  const { id, role, blocks, error, namespace } = streamed;
  const callId = callOf(draft, namespace);
  // The message comes from an inner part of the agent that is not a subagent.
  if (callId === undefined && namespace.length > 1) return;
  const known = draft.messages.get(id);
  // The message is already complete, because a loaded state contains it.
  if (known?.state === 'complete') return void draft.messages.set(id, { ...known, runId });
  const state = ({ streaming: 'open', complete: 'complete', failed: 'cut' } as const)[streamed.status];
  const isAnswer = callId === undefined && !draft.order.includes(id);
  const questionId = isAnswer ? (known?.questionId ?? draft.run.questionId ?? '') : undefined;
  draft.messages.set(id, { id, role, blocks, state, error, runId, callId, questionId });
}

function addToolEvent(draft: Draft, namespace: readonly string[], data: Fields): void {
  const id = stringOf(data.tool_call_id);
  if (id === undefined) return;
  const call = draft.calls.get(id) ?? { id, name: '', input: undefined, status: 'running', output: '' };
  const name = stringOf(data.tool_name) ?? call.name;
  if (data.event === 'tool-started') {
    if (name === 'task') addSubagent(draft, namespace, { event: 'started', cause: { tool_call_id: id } });
    if (call.status === 'running') draft.calls.set(id, { ...call, name, input: data.input ?? call.input });
  } else if (data.event === 'tool-output-delta' && call.status === 'running') {
    draft.calls.set(id, { ...call, output: call.output + outputText(data.delta) });
  } else if (data.event === 'tool-finished') {
    draft.calls.set(id, { ...call, ...resultOf(data.output) });
  } else if (data.event === 'tool-error') {
    draft.calls.set(id, { ...call, status: 'failed', output: stringOf(data.message) ?? 'The tool failed.' });
  }
}

function addRequest(draft: Draft, { interrupt_id, payload }: Fields): void {
  const id = stringOf(interrupt_id);
  if (id === undefined || draft.requests.some((known) => known.id === id)) return;
  draft.requests = [...draft.requests, { id, payload }];
}

/**
 * Adds a message from a state, including the result of a tool call if the message contains one. Returns the message's
 * id.
 */
function addMessage(draft: Draft, fields: Fields): string[] {
  const message = messageOf(fields);
  if (message === undefined) return [];
  draft.messages.set(message.id, { ...message, runId: draft.messages.get(message.id)?.runId });
  const callId = stringOf(fields.tool_call_id);
  if (callId !== undefined) {
    const call = draft.calls.get(callId) ?? { id: callId, name: stringOf(fields.name) ?? '', input: undefined };
    draft.calls.set(callId, { ...call, ...resultOf(fields) });
  }
  return [message.id];
}

/** Returns the result of a tool call. A declined call is recognized here, because LangChain reports it as an error. */
function resultOf(output: unknown): { readonly status: 'complete' | 'failed' | 'declined'; readonly output: string } {
  const text = outputText(output);
  const isDeclined = /^(The user declined|User rejected the tool call)/.test(text);
  const isFailed = fieldsOf(output).status === 'error';
  return { status: isFailed ? (isDeclined ? 'declined' : 'failed') : 'complete', output: text };
}

/** Returns the id of the tool call that started the innermost subagent of a namespace. */
function callOf({ subagents }: Draft, namespace: readonly string[]): string | undefined {
  for (let depth = namespace.length; depth > 0; depth--) {
    const callId = subagents.get(JSON.stringify(namespace.slice(0, depth)));
    if (callId !== undefined) return callId;
  }
  return undefined;
}
