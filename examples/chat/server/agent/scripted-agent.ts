import { randomUUID } from 'node:crypto';
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import type { RunnableConfig } from '@langchain/core/runnables';
import { v7 as uuidv7 } from '@langchain/core/utils/uuid';
import { messagesStateReducer, START, type StateSnapshot } from '@langchain/langgraph';
import type { ProtocolEvent } from '@langchain/langgraph/stream';
import { messagesOf } from '../runs/messages.ts';
import type { Agent } from '../runs/run.ts';

/** A turn of a conversation, as the function that answers it sees it. */
export interface ScriptedTurn {
  /** Id of the run that the chat has reported to the client. */
  readonly runId: string;
  /** Aborted when the run is stopped. The run ends when the answer, or its next part, has settled. */
  readonly signal: AbortSignal;
}

/**
 * Answers a question with text, or with the parts of a text. If it throws, or its parts throw, the run fails with the
 * error's message.
 */
export type Answer = (
  question: string,
  threadId: string,
  turn: ScriptedTurn,
) => string | AsyncIterable<string> | Promise<string | AsyncIterable<string>>;

type Events<Result = void> = AsyncGenerator<ProtocolEvent, Result>;
type ToolCall = { readonly id: string; readonly name: string; readonly args: Record<string, unknown> };
type Snapshot = StateSnapshot & { readonly unread: readonly BaseMessage[] };

const [MODEL, TOOLS] = ['model_request', 'tools'];

/**
 * An agent without a model. In each turn a supervisor gives the question to a researcher, whose tool searches, and then
 * streams the answer of a function. Its events and states are those of `createSupervisor`. States are kept in memory.
 */
export class ScriptedAgent implements Agent {
  readonly name = 'supervisor';
  readonly #answer: Answer;
  /** The states of each thread, oldest first. */
  readonly #states = new Map<string, Snapshot[]>();

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  async getState(config: RunnableConfig): Promise<StateSnapshot> {
    return this.#find(config) ?? { values: {}, next: [], config, tasks: [] };
  }

  async *getStateHistory(
    config: RunnableConfig,
    options: { limit?: number; before?: RunnableConfig; filter?: Record<string, unknown> } = {},
  ): AsyncIterableIterator<StateSnapshot> {
    const { limit, before, filter = {} } = options;
    const { thread_id, checkpoint_id } = config.configurable ?? {};
    const all = this.#states.get(thread_id) ?? [];
    const end = before === undefined ? all.length : all.indexOf(this.#find(before) as Snapshot);
    const isWanted = ({ metadata, config }: Snapshot): boolean =>
      (checkpoint_id === undefined || checkpoint_id === idOf(config)) &&
      Object.entries(filter).every(([key, value]) => Object(metadata)[key] === value);
    yield* all.slice(0, end).filter(isWanted).reverse().slice(0, limit);
  }

  async updateState(config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig> {
    const parent = this.#find(config);
    const messages = messagesStateReducer([...messagesOf(parent?.values)], [...messagesOf(values)]);
    const next = asNode === START ? [MODEL] : (parent?.next ?? []);
    return this.#save(config, { ...Object(values), messages }, next, { source: 'update' }, parent).config;
  }

  async deleteThread(threadId: string): Promise<void> {
    this.#states.delete(threadId);
  }

  async *streamEvents(input: unknown, config: RunnableConfig & { signal: AbortSignal }): Events {
    const parent = this.#find(config);
    const { thread_id, run_id, trace_id } = config.configurable ?? {};
    const metadata = { ...config.metadata, run_id, trace_id };
    const unread = input === null ? (parent?.unread ?? []) : messagesOf(input);
    let state = this.#save(config, parent?.values, [START], { ...metadata, source: 'input' }, parent, unread);
    const save = (messages: BaseMessage[], next: string[]): string => {
      config.signal.throwIfAborted();
      state = this.#save(config, { messages }, next, { ...metadata, source: 'loop' }, state);
      return idOf(state.config);
    };
    const messages = messagesStateReducer([...messagesOf(parent?.values)], [...unread]);
    const first = { id: idOf(state.config), step: Number(state.metadata?.step) };
    const graph = new Graph(messages, { name: this.name, namespace: [], save, first });
    const question = messages.findLast((message) => HumanMessage.isInstance(message))?.text ?? '';
    yield eventOf('lifecycle', [], { event: 'running', graph_name: 'root' });
    yield* graph.checkpoint([MODEL]);
    const call = callOf('task', { subagent_type: 'researcher', description: question });
    yield* graph.model([TOOLS], ['Let me ', 'look that up.'], call);
    yield* graph.tool(call, (place) => research(place, question));
    const turn = { runId: run_id, signal: config.signal };
    const answer = async () => this.#answer(question, thread_id, turn);
    yield* graph.model([], partsOf(answer, config.signal));
    yield eventOf('lifecycle', [], { event: 'completed', graph_name: 'root' });
  }

  #find({ configurable }: RunnableConfig): Snapshot | undefined {
    const states = this.#states.get(configurable?.thread_id);
    const id = configurable?.checkpoint_id;
    return id === undefined ? states?.at(-1) : states?.find((state) => idOf(state.config) === id);
  }

  #save(
    { configurable }: RunnableConfig,
    values: unknown,
    next: string[],
    metadata: object,
    parent: Snapshot | undefined,
    unread: readonly BaseMessage[] = [],
  ): Snapshot {
    const { thread_id } = configurable ?? {};
    const state = {
      values: values ?? {},
      next,
      tasks: next.map((name) => ({ id: randomUUID(), name, interrupts: [], path: ['__pregel_pull', name] as never })),
      metadata: { step: (parent?.metadata?.step ?? -2) + 1, parents: {}, thread_id, ...metadata } as never,
      config: { configurable: { thread_id, checkpoint_ns: '', checkpoint_id: uuidv7() } },
      createdAt: new Date().toISOString(),
      ...(parent && { parentConfig: parent.config }),
      unread,
    };
    this.#states.set(thread_id, [...(this.#states.get(thread_id) ?? []), state]);
    return state;
  }
}

interface GraphOptions {
  readonly name: string;
  readonly namespace: readonly string[];
  /** The state before the first step. */
  readonly first: { readonly id: string; readonly step: number };
  /** Saves a state and returns its id. */
  readonly save: (messages: BaseMessage[], next: string[]) => string;
}

/** The steps of a graph, whose events are below a namespace. Each step adds a message to the state. */
class Graph {
  messages: BaseMessage[];
  readonly #options: GraphOptions;
  #last: GraphOptions['first'];

  constructor(messages: BaseMessage[], options: GraphOptions) {
    this.messages = messages;
    this.#options = options;
    this.#last = options.first;
  }

  async *checkpoint(next: string[]): Events {
    const { id: parent_id, step } = this.#last;
    this.#last = { id: this.#options.save(this.messages, next), step: step + 1 };
    yield eventOf('checkpoints', this.#options.namespace, { ...this.#last, parent_id, source: 'loop' });
    yield eventOf('values', this.#options.namespace, { messages: this.messages });
  }

  /** A message of the model: text in parts, a tool call, or both. */
  model(next: string[], parts: Iterable<string> | AsyncIterable<string>, call?: ToolCall): Events {
    return this.#step(MODEL, next, (place) => messageEvents(place, this.#options.name, parts, call));
  }

  /** The result of a tool. */
  tool(call: ToolCall, use: (place: readonly string[]) => string | Events<string>): Events {
    return this.#step(TOOLS, [MODEL], (place) => toolEvents(place, call, use(place)), { lg_tool_call: call });
  }

  async *#step(
    node: string,
    next: string[],
    work: (place: readonly string[]) => Events<BaseMessage>,
    input: object = {},
  ): Events {
    const id = randomUUID();
    const place = [...this.#options.namespace, `${node}:${id}`];
    yield eventOf('tasks', this.#options.namespace, { id, name: node, input: { messages: this.messages, ...input } });
    yield eventOf('lifecycle', place, { event: 'started', graph_name: node });
    const message = yield* work(place);
    yield eventOf('updates', this.#options.namespace, { node, values: { messages: [message] } }, node);
    yield eventOf('lifecycle', place, { event: 'completed', graph_name: node });
    this.messages = [...this.messages, message];
    yield* this.checkpoint(next);
  }
}

/** The researcher, which is a graph below the `task` tool. */
async function* research(place: readonly string[], question: string): Events<string> {
  const task = new HumanMessage({ id: randomUUID(), content: question });
  const first = { id: uuidv7(), step: -1 };
  const graph = new Graph([task], { name: 'researcher', namespace: place, save: () => uuidv7(), first });
  yield* graph.checkpoint([MODEL]);
  const call = callOf('search_docs', { query: question });
  yield* graph.model([TOOLS], [], call);
  yield* graph.tool(call, () => 'One passage.');
  yield* graph.model([], ['One passage ', 'answers this.']);
  return graph.messages.at(-1)?.text ?? '';
}

async function* toolEvents(
  place: readonly string[],
  { id: tool_call_id, name, args }: ToolCall,
  result: string | Events<string>,
): Events<ToolMessage> {
  yield eventOf('tools', place, { event: 'tool-started', tool_call_id, tool_name: name, input: JSON.stringify(args) });
  const content = typeof result === 'string' ? result : yield* result;
  const output = new ToolMessage({ id: randomUUID(), name, tool_call_id, content, status: 'success' });
  yield eventOf('tools', place, { event: 'tool-finished', tool_call_id, output });
  return output;
}

async function* messageEvents(
  place: readonly string[],
  name: string,
  parts: Iterable<string> | AsyncIterable<string>,
  call?: ToolCall,
): Events<AIMessage> {
  const run_id = uuidv7();
  const event = (type: string, data: object): ProtocolEvent =>
    eventOf('messages', place, { event: type, ...data, run_id }, MODEL);
  yield event('message-start', { id: `run-${run_id}` });
  const content: Record<string, unknown>[] = [];
  let text = '';
  for await (const part of parts) {
    if (text === '') yield event('content-block-start', { index: 0, content: { type: 'text', text } });
    text += part;
    yield event('content-block-delta', { index: 0, delta: { type: 'text-delta', text: part } });
  }
  if (text !== '') content.push({ type: 'text', text });
  if (call !== undefined) {
    const chunk = { ...call, type: 'tool_call_chunk', args: JSON.stringify(call.args) };
    const index = content.push({ type: 'tool_call', ...call }) - 1;
    yield event('content-block-start', { index, content: { ...chunk, index } });
    yield event('content-block-delta', { index, delta: { type: 'block-delta', fields: chunk } });
  }
  for (const [index, block] of content.entries()) yield event('content-block-finish', { index, content: block });
  yield event('message-finish', { reason: 'stop' });
  const response_metadata = { output_version: 'v1' as const, finish_reason: 'stop' };
  const tool_calls = call === undefined ? [] : [{ type: 'tool_call' as const, ...call }];
  return new AIMessage({ id: `run-${run_id}`, name, content: content as never, tool_calls, response_metadata });
}

/** Returns the parts of an answer. Stops between two parts when the signal aborts. */
async function* partsOf(answer: () => ReturnType<Answer>, signal: AbortSignal): AsyncGenerator<string> {
  const given = await answer();
  const parts = typeof given === 'string' ? (given.match(/\S+\s*|\s+/g) ?? []) : given;
  for await (const part of parts) {
    signal.throwIfAborted();
    if (part !== '') yield part;
  }
}

function callOf(name: string, args: Record<string, unknown>): ToolCall {
  return { id: `${name}-${uuidv7()}`, name, args };
}

function idOf({ configurable }: RunnableConfig): string {
  return configurable?.checkpoint_id;
}

function eventOf(method: string, namespace: readonly string[], data: unknown, node?: string): ProtocolEvent {
  const params = { namespace: [...namespace], timestamp: Date.now(), ...(node !== undefined && { node }), data };
  return { type: 'event', seq: 0, method, params } as ProtocolEvent;
}
