import type { AssembledMessage, MessageAssembler } from 'runspan/clients';
import { checkpointOf, type Fields, fieldsOf, stringOf, type ThreadEvent, type ThreadState } from './client.ts';
import { type Message, messageOf, outputText, textIn } from './message.ts';

/** A call of a tool, by the agent or by a subagent. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly status: 'running' | 'complete' | 'failed' | 'declined';
  /** The output so far. */
  readonly output: string;
}

/** A request of the agent, which waits for the answer. */
export interface InputRequest {
  readonly id: string;
  readonly payload: unknown;
}

export interface RunState {
  /** `starting`: the command was sent, and no event has arrived. */
  readonly status: 'idle' | 'starting' | 'running' | 'completed' | 'failed' | 'interrupted';
  readonly id?: string | undefined;
  /** The message that the run answers. */
  readonly questionId?: string | undefined;
  /** Why the run failed or was interrupted. */
  readonly error?: string | undefined;
  /** Whether this page asked the question. A state that is older than the run must then not hide the question. */
  readonly isOwn?: boolean;
}

/** An immutable snapshot of a thread: its newest state, and the events since. */
export interface Conversation {
  /** All known messages: of states, of runs in progress, and of subagents. */
  readonly messages: ReadonlyMap<string, Message>;
  /** The messages of the newest state. */
  readonly order: readonly string[];
  readonly calls: ReadonlyMap<string, ToolCall>;
  /** The call that a subagent works for, by its namespace. */
  readonly subagents: ReadonlyMap<string, string>;
  readonly requests: readonly InputRequest[];
  readonly run: RunState;
  /** How the last run of a question ended. */
  readonly ends: ReadonlyMap<string, RunState>;
  /** The newest checkpoint, and the run that wrote it. */
  readonly checkpointId: string | undefined;
  readonly stateRunId: string | undefined;
  /** The next nodes of the newest state. If no run is in progress, a run ended before them. */
  readonly next: readonly string[];
}

/** A question, and the answer of the agent. */
export interface Turn {
  /** Undefined if the thread begins with an answer. */
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

/** A conversation that a function builds before it returns it. */
type Draft = {
  -readonly [Key in keyof Conversation]: Conversation[Key] extends ReadonlyMap<infer Name, infer Value>
    ? Map<Name, Value>
    : Conversation[Key];
};

export function isBusy({ run }: Conversation): boolean {
  return run.status === 'starting' || run.status === 'running';
}

/** Whether a run failed or was stopped. A run that requests input does not count. */
export function isCutShort({ status, error }: RunState): boolean {
  return status === 'failed' || (status === 'interrupted' && error !== undefined);
}

/** The conversation with a state that was loaded. */
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
    // A completed run has all its messages in a state, of this branch or of another one.
    if (questionId !== undefined && draft.ends.get(questionId)?.status === 'completed' && !draft.order.includes(id))
      draft.messages.delete(id);
  }
  return draft;
}

/** The conversation at an earlier checkpoint. */
export function atState(conversation: Conversation, state: ThreadState): Conversation {
  const earlier = withState(conversation, state);
  const messages = new Map([...earlier.messages].filter(([, { questionId }]) => questionId === undefined));
  return { ...earlier, messages, requests: [], run: { status: 'idle' } };
}

/** The conversation with a question that was sent, before the server confirms it. The same question replaces its answer. */
export function withQuestion(conversation: Conversation, id: string, text: string): Conversation {
  const draft = draftOf(conversation);
  draft.messages.set(id, { id, role: 'human', blocks: [{ type: 'text', text }], state: 'complete' });
  const place = draft.order.indexOf(id);
  draft.order = [...(place === -1 ? draft.order : draft.order.slice(0, place)), id];
  beginRun(draft, { status: 'starting', questionId: id, isOwn: true });
  return draft;
}

/** The conversation after these events. The assembler has received all earlier events of the thread. */
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

/** The turns of the conversation, in their order. */
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

/** The status of a call. Without an outcome, a call is in progress only in the last turn. */
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

/** A text for screen readers. */
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
  // An answer to a request continues the turn.
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
  // A waiting run can end while another one is in progress.
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

/** Adds a message that streams, or replaces it by a longer version. */
function addStreamed(draft: Draft, streamed: AssembledMessage | undefined, runId: string | undefined): void {
  if (streamed === undefined) return;
  const { id, role, blocks, error, namespace } = streamed;
  const callId = callOf(draft, namespace);
  // A part of the agent that is not a subagent.
  if (callId === undefined && namespace.length > 1) return;
  const known = draft.messages.get(id);
  // A state that was loaded already contains the message.
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

/** Adds a message of a state, and the result of a call that it contains. Returns its id. */
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

/** The outcome of a call. LangChain reports a declined call as an error. */
function resultOf(output: unknown): { readonly status: 'complete' | 'failed' | 'declined'; readonly output: string } {
  const text = outputText(output);
  const isDeclined = /^(The user declined|User rejected the tool call)/.test(text);
  const isFailed = fieldsOf(output).status === 'error';
  return { status: isFailed ? (isDeclined ? 'declined' : 'failed') : 'complete', output: text };
}

/** The call of the innermost subagent that a namespace belongs to. */
function callOf({ subagents }: Draft, namespace: readonly string[]): string | undefined {
  for (let depth = namespace.length; depth > 0; depth--) {
    const callId = subagents.get(JSON.stringify(namespace.slice(0, depth)));
    if (callId !== undefined) return callId;
  }
  return undefined;
}
