import { checkpointOf, type Fields, fieldsOf, stringOf, type ThreadEvent, type ThreadState } from './client.ts';
import { type Message, messageOf, outputText, textIn, withEvent } from './message.ts';

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
  /** Whether this page asked the question, so that states of earlier runs do not show its answer. */
  readonly isOwn?: boolean;
}

/** A thread as the page knows it: its newest state, and the events since. Never changed, only replaced. */
export interface Conversation {
  readonly messages: ReadonlyMap<string, Message>;
  /** The messages of the newest state. */
  readonly order: readonly string[];
  /** Messages that are not in a state, by the message that they answer. */
  readonly answers: ReadonlyMap<string, readonly string[]>;
  /** How the last run of a question ended. */
  readonly ends: ReadonlyMap<string, RunState>;
  /** The run that wrote a message. */
  readonly runs: ReadonlyMap<string, string>;
  readonly calls: ReadonlyMap<string, ToolCall>;
  /** The messages of a subagent, by the call that started it. */
  readonly agents: ReadonlyMap<string, readonly string[]>;
  readonly requests: readonly InputRequest[];
  readonly run: RunState;
  /** The newest checkpoint, and the run that wrote it. */
  readonly checkpointId: string | undefined;
  readonly stateRunId: string | undefined;
  /** The next nodes of the newest state. If no run is in progress, a run ended before them. */
  readonly next: readonly string[];
  /** The call that a subagent works for, by its namespace. */
  readonly owners: ReadonlyMap<string, string>;
  /** The message that streams in a namespace. */
  readonly open: ReadonlyMap<string, string>;
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
  answers: new Map(),
  ends: new Map(),
  runs: new Map(),
  calls: new Map(),
  agents: new Map(),
  requests: [],
  run: { status: 'idle' },
  checkpointId: undefined,
  stateRunId: undefined,
  next: [],
  owners: new Map(),
  open: new Map(),
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

/** How a run ended that did not complete. A run that requests input has not ended in this sense. */
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
  const known = new Set(draft.order);
  for (const [questionId, ids] of draft.answers) {
    // A completed run has all its messages in a state, of this branch or of another one.
    const isOver = draft.ends.get(questionId)?.status === 'completed';
    const left = isOver ? [] : ids.filter((id) => !known.has(id));
    if (left.length === 0) draft.answers.delete(questionId);
    else draft.answers.set(questionId, left);
  }
  return draft;
}

/** The conversation at an earlier checkpoint. */
export function atState(conversation: Conversation, state: ThreadState): Conversation {
  const earlier = withState(conversation, state);
  return { ...earlier, answers: new Map(), requests: [], run: { status: 'idle' } };
}

/** The conversation with a question that was sent, before the server confirms it. The same question replaces its answer. */
export function withQuestion(conversation: Conversation, id: string, text: string): Conversation {
  const draft = draftOf(conversation);
  draft.messages.set(id, { id, role: 'human', blocks: [{ kind: 'text', text }], state: 'complete' });
  const place = draft.order.indexOf(id);
  draft.order = [...(place === -1 ? draft.order : draft.order.slice(0, place)), id];
  beginRun(draft, { status: 'starting', questionId: id, isOwn: true });
  return draft;
}

/** The conversation after these events. */
export function withEvents(conversation: Conversation, events: readonly ThreadEvent[]): Conversation {
  const draft = draftOf(conversation);
  for (const { method, params } of events) {
    const { namespace = [], run_id: runId } = params;
    const data = fieldsOf(params.data);
    if (method === 'lifecycle' && namespace.length === 0) addRunEvent(draft, data, runId);
    else if (method === 'lifecycle') addSubagent(draft, namespace, data);
    else if (method === 'messages') addMessageEvent(draft, namespace, data, runId);
    else if (method === 'tools') addToolEvent(draft, namespace, data);
    else if (method === 'input.requested') addRequest(draft, data);
  }
  return draft;
}

/** The conversation as it is shown. */
export function turnsOf(conversation: Conversation): Turn[] {
  const { messages, order, answers, ends, runs, run, stateRunId } = conversation;
  const turns: { question: Message | undefined; answer: Message[] }[] = [];
  for (const id of order) {
    const message = messages.get(id);
    if (message?.role === 'human') turns.push({ question: message, answer: [] });
    else if (message?.role === 'ai') {
      if (turns.length === 0) turns.push({ question: undefined, answer: [] });
      turns.at(-1)?.answer.push(message);
    }
  }
  return turns.map(({ question, answer }, index) => {
    const questionId = question?.id ?? '';
    const added = (answers.get(questionId) ?? []).flatMap((id) => messages.get(id) ?? []);
    const shown = [...answer, ...added.filter(({ role }) => role === 'ai')];
    const isLast = index === turns.length - 1;
    const end = isLast && run.questionId === questionId ? run : ends.get(questionId);
    const writtenBy = shown.flatMap(({ id }) => runs.get(id) ?? []).at(-1);
    const runId = end?.id ?? writtenBy ?? (isLast && stateRunId !== undefined ? stateRunId : undefined);
    return { question, answer: shown, runId, end };
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
  if (run.questionId !== undefined) {
    draft.answers.delete(run.questionId);
    draft.ends.delete(run.questionId);
  }
  draft.run = run;
  draft.requests = [];
  draft.open.clear();
}

function addRunEvent(draft: Draft, { event, error, question_id }: Fields, id: string | undefined): void {
  if (event === 'running') {
    const questionId = stringOf(question_id) ?? (draft.run.status === 'starting' ? draft.run.questionId : undefined);
    const isOwn = draft.run.isOwn === true && draft.run.questionId === questionId;
    // An answer to a request continues the turn.
    const answer = draft.requests.length > 0 ? draft.answers.get(questionId ?? '') : undefined;
    beginRun(draft, { status: 'running', id, questionId, isOwn });
    if (answer !== undefined && questionId !== undefined) draft.answers.set(questionId, answer);
    return;
  }
  // A waiting run can end while another one is in progress.
  if (draft.run.id !== undefined && draft.run.id !== id) return;
  const { questionId } = draft.run;
  draft.run = { status: event as RunState['status'], id, questionId, error: stringOf(error) };
  if (questionId !== undefined) draft.ends.set(questionId, draft.run);
  draft.open.clear();
  for (const [messageId, message] of draft.messages) {
    if (message.state === 'open') draft.messages.set(messageId, { ...message, state: 'cut' });
  }
}

function addSubagent(draft: Draft, namespace: readonly string[], { event, cause }: Fields): void {
  const callId = stringOf(fieldsOf(cause).tool_call_id);
  if (event !== 'started' || callId === undefined) return;
  draft.owners.set(JSON.stringify(namespace), callId);
  if (!draft.agents.has(callId)) draft.agents.set(callId, []);
}

function addMessageEvent(draft: Draft, namespace: readonly string[], data: Fields, runId: string | undefined): void {
  const place = JSON.stringify([namespace, data.run_id]);
  if (data.event === 'message-start') {
    const id = stringOf(data.id);
    const owner = ownerOf(draft, namespace);
    if (id === undefined || (owner === undefined && namespace.length > 1)) return;
    if (runId !== undefined) draft.runs.set(id, runId);
    const isKnown = draft.messages.get(id)?.state === 'complete';
    if (!isKnown) {
      draft.open.set(place, id);
      draft.messages.set(id, { id, role: stringOf(data.role) ?? 'ai', blocks: [], state: 'open' });
    }
    if (owner !== undefined) append(draft.agents, owner, id);
    else if (!draft.order.includes(id)) append(draft.answers, draft.run.questionId ?? '', id);
    return;
  }
  const message = draft.messages.get(draft.open.get(place) ?? '');
  // The message may have been loaded with a state in the meantime.
  if (message?.state !== 'open') return;
  draft.messages.set(message.id, withEvent(message, data));
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
  draft.messages.set(message.id, message);
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

function append(lists: Map<string, readonly string[]>, name: string, id: string): void {
  const list = lists.get(name) ?? [];
  if (!list.includes(id)) lists.set(name, [...list, id]);
}

/** The call of the innermost subagent that a namespace belongs to. */
function ownerOf({ owners }: Draft, namespace: readonly string[]): string | undefined {
  for (let depth = namespace.length; depth > 0; depth--) {
    const owner = owners.get(JSON.stringify(namespace.slice(0, depth)));
    if (owner !== undefined) return owner;
  }
  return undefined;
}
