import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { clock } from '../../base/clock.ts';
import { shown } from '../../base/text.ts';
import { type RunRequest, STREAM_MODES, type StatelessRunRequest } from '../../clients/agent-server/run-request.ts';
import type { Interrupt } from '../../clients/agent-server/thread.ts';
import { exactJson, type Fields, fieldsOf, isFields, listOf } from '../../payload/fields.ts';
import { fromHeaders } from '../../run/propagation/propagation.ts';
import { END_REASON } from '../../run/record.ts';
import { withRun } from '../../run/start-run.ts';
import { dottedOrder, isoTimestamp } from '../../run/time.ts';
import { type AgentThread, type Entry, newEntry, type Turn } from './agent-data.ts';
import type { AssistantFunction } from './assistant.ts';
import type { EndpointCall } from './endpoint-routes.ts';

export interface AgentRunSettings {
  readonly id: string;
  /** The request that creates the run. Its headers may name a run of the caller. */
  readonly call: EndpointCall;
  readonly request: RunRequest & StatelessRunRequest;
  readonly thread: AgentThread;
  readonly graph: string;
  readonly assistant: AssistantFunction;
  readonly project: string;
  readonly feedbackUrls: Readonly<Record<string, string>>;
}

type Failure = { readonly error: string; readonly message: string } | undefined;

/** A run of an assistant, which starts when the earlier runs on its thread have ended. */
export class AgentRun implements Entry {
  readonly record: Fields;
  readonly settings: AgentRunSettings;
  /** Resolves when the run has ended, with the response to a request that waits for it. */
  readonly result: Promise<Fields>;
  readonly #cancelling = new AbortController();
  readonly #events: { readonly name: string; readonly data: string }[] = [];
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #question: Interrupt | undefined;
  #isOver = false;

  constructor(settings: AgentRunSettings) {
    this.settings = settings;
    const { id: run_id, thread, request } = settings;
    const { assistant_id, metadata = {}, multitask_strategy = 'enqueue', ...kwargs } = request;
    const ids = { run_id, thread_id: thread.record.thread_id, assistant_id };
    this.record = newEntry({ ...ids, status: 'pending', metadata, multitask_strategy, kwargs });
    this.#emit('metadata', { run_id, attempt: 1 });
    const earlier = Promise.all([...thread.active].map(({ result }) => result));
    this.result = Promise.race([earlier, once(this.#cancelling.signal, 'abort')]).then(() => this.#run());
    thread.active.add(this);
    thread.record.status = 'busy';
  }

  async cancel(): Promise<void> {
    this.#cancelling.abort();
    await this.result;
  }

  /** Yields the server-sent events after an id, which is a position, or only new events. Without modes, yields all. */
  async *eventsAfter(id: string | undefined, modes: readonly string[], ended: AbortSignal): AsyncGenerator<string> {
    // An empty chunk sends the headers.
    yield '';
    for (let at = id === undefined ? this.#events.length : Number(id) + 1; ; at++) {
      while (this.#events[at] === undefined) {
        if (this.#isOver) return;
        await once(this.#changes, 'change', { signal: ended });
      }
      const { name, data } = this.#events[at] as { name: string; data: string };
      if (modes.length === 0 || isIn(modes, name)) yield `event: ${name}\ndata: ${data}\nid: ${at}\n\n`;
    }
  }

  /** Yields the result after an empty line, which sends the headers. */
  async *resultText(): AsyncGenerator<string> {
    yield '\n';
    yield exactJson(await this.result);
  }

  async #run(): Promise<Fields> {
    const { record } = this;
    const { thread, feedbackUrls } = this.settings;
    record.status = 'running';
    const error = await this.#recorded(this.#turn());
    const isInterrupted = this.#cancelling.signal.aborted || this.#question !== undefined;
    record.status = error ? 'error' : isInterrupted ? 'interrupted' : 'success';
    thread.active.delete(this);
    thread.record.status = thread.active.size > 0 ? 'busy' : error ? 'error' : thread.paused ? 'interrupted' : 'idle';
    if (error) this.#emit('error', error);
    if (Object.keys(feedbackUrls).length > 0) this.#emit('feedback', feedbackUrls);
    this.#isOver = true;
    this.#changes.emit('change');
    return error ? { __error__: error } : this.#outputs;
  }

  get #outputs(): Fields {
    return { ...this.settings.thread.values, ...(this.#question && { __interrupt__: [this.#question] }) };
  }

  /** Stores the run below the caller's run when it has ended. */
  async #recorded(turn: Turn): Promise<Failure> {
    const { id, call, graph, project, request } = this.settings;
    const { thread_id, assistant_id } = this.record;
    const caller = fromHeaders(call.call.request.headers);
    const startUs = clock.nowUs();
    const order = dottedOrder(caller?.dottedOrder, startUs, id);
    const error = await withRun(fromHeaders({ 'runspan-trace': order }), () => this.#call(turn));
    const end = this.#cancelling.signal.aborted && ({ [END_REASON]: 'cancelled' } as const);
    const fields = {
      ...{ name: graph, run_type: 'chain', session_name: project, trace_id: caller?.traceId ?? id },
      ...(caller && { parent_run_id: caller.id }),
      ...{ dotted_order: order, start_time: isoTimestamp(startUs), end_time: isoTimestamp(clock.nowUs()) },
      inputs: isFields(turn.input) ? turn.input : { input: turn.input },
      outputs: this.#outputs,
      ...(error && { error: `${error.error}: ${error.message}` }),
      extra: { metadata: { ...request.metadata, thread_id, assistant_id }, ...end },
    };
    await call.call.store.apply({ tenant: call.tenant }, [{ kind: 'post', id, fields, attachments: [] }]);
    return error;
  }

  /** Returns the paused turn with the answer if the request resumes it, otherwise a new turn. */
  #turn(): Turn {
    const { thread, request } = this.settings;
    const { input = null, command } = request;
    const [before, turn] = [thread.values, thread.paused];
    thread.paused = undefined;
    if (turn !== undefined && command?.resume !== undefined)
      return { ...turn, answers: [...turn.answers, command.resume] };
    if (isFields(input)) thread.change(input, 'input');
    return { input, before, answers: [] };
  }

  /** Calls the assistant until the run is cancelled. Returns the error with which the run fails. */
  async #call(turn: Turn): Promise<Failure> {
    const { thread, graph } = this.settings;
    const { signal } = this.#cancelling;
    const { values: start } = thread;
    this.#emit('values', start);
    try {
      if (!signal.aborted) await Promise.race([this.#steps(turn), once(signal, 'abort')]);
    } catch (thrown) {
      const { name: error, message } = thrown instanceof Error ? thrown : new Error(String(thrown));
      if (this.#question === undefined && !signal.aborted) return { error, message };
    }
    if (this.#question === undefined) return undefined;
    // The updates are withdrawn, because the function repeats them when it is called again.
    thread.add(start, 'loop', { name: graph, question: this.#question });
    thread.paused = turn;
    this.#emit('updates', { __interrupt__: [this.#question] });
    this.#emit('values', this.#outputs);
    return undefined;
  }

  async #steps({ input, before, answers }: Turn): Promise<void> {
    const { signal } = this.#cancelling;
    const { id: runId, thread, assistant, graph } = this.settings;
    const { thread_id, metadata } = thread.record;
    const given = [...answers];
    const updates = assistant(input, {
      runId,
      thread: { id: String(thread_id), values: before, metadata: fieldsOf(metadata) },
      signal,
      emit: (event, data) => this.#emit(event, data),
      interrupt: (value) => {
        if (given.length > 0) return given.shift();
        this.#question ??= { id: randomUUID(), value: JSON.parse(exactJson(value)) };
        throw new Error('The run waits for an answer');
      },
    });
    for await (const one of updates) {
      if (signal.aborted) return;
      if (!isFields(one)) throw new TypeError(`Expected the assistant to yield objects, got ${shown(one)}`);
      const update = thread.change(one, 'loop');
      for (const message of listOf(update.messages)) {
        this.#emit('messages', [message, {}]);
        this.#emit('messages/complete', [message]);
      }
      this.#emit('updates', { [graph]: update });
      this.#emit('values', thread.values);
    }
  }

  #emit(name: string, data: unknown): void {
    const { stream_mode: modes = 'values', stream_subgraphs: hasSubgraphs } = this.settings.request;
    const text = exactJson(data);
    if (this.#isOver || !isIn([modes].flat(), name) || (name.includes('|') && !hasSubgraphs)) return;
    this.#events.push({ name, data: text });
    this.#changes.emit('change');
  }
}

/** Returns whether streams with these modes have an event. Events without a mode, such as `error`, are in all of them. */
function isIn(modes: readonly string[], name: string): boolean {
  const mode = name === 'messages' ? 'messages-tuple' : name.split(/[|/]/, 1)[0];
  return modes.some((one) => one === mode) || !STREAM_MODES.some((known) => known === mode);
}
