import { type Conversation, type Draft, draftOf, resultOf, type ToolCall, take } from './conversation.ts';
import { outputText, withPiece } from './message.ts';
import { type Fields, fieldsOf, type ProtocolEvent, stringOf } from './protocol.ts';

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
    // One that ended before its first state has left nothing in the thread.
    if (draft.reading.runId === runId) draft.ends.set(draft.reading.last, draft.run);
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
      draft.calls.set(id, { ...call, ...resultOf(data.output) });
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
  draft.reading.runId = runId;
  const isIn = new Set(order);
  draft.streamed = draft.streamed.filter((id) => !isIn.has(id));
  if (isOld) return;
  draft.order = order;
  draft.checkpointId = checkpoint === '' ? draft.checkpointId : checkpoint;
  draft.next = [];
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
