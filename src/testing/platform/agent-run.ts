import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { clock } from '../../base/clock.ts';
import { ignoreRejection } from '../../base/guard.ts';
import { type RunRequest, STREAM_MODES, type StatelessRunRequest } from '../../clients/agent-server/run-request.ts';
import type { Interrupt } from '../../clients/agent-server/thread.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../../payload/fields.ts';
import type { RunFields, RunOperation } from '../../receiver/domain/run-message.ts';
import { fromHeaders, type RemoteRun } from '../../run/propagation/propagation.ts';
import { withRun } from '../../run/start-run.ts';
import { dottedOrder, isoTimestamp } from '../../run/time.ts';
import {
  type AgentThread,
  type Entry,
  EventLog,
  newRecord,
  nowIso,
  type Turn,
  withMessageIds,
  withUpdate,
} from './agent-data.ts';
import type { Assistant } from './assistant.ts';

export type AgentRunRequest = RunRequest & StatelessRunRequest;

export interface AgentRunSettings {
  readonly id: string;
  /** Path of the run, relative to the URL of the agent server. */
  readonly path: string;
  readonly thread: AgentThread;
  readonly assistantId: unknown;
  readonly graph: string;
  readonly assistant: Assistant;
  readonly request: AgentRunRequest;
  /** Feedback URLs by key. */
  readonly feedback: Readonly<Record<string, string>>;
  /** The run that the request's headers name. */
  readonly caller: RemoteRun | undefined;
  readonly project: string;
  /** Writes to the store in which the run is recorded. */
  readonly save: (operations: readonly RunOperation[]) => Promise<unknown>;
}

/** A run of an assistant, which starts when the earlier runs on its thread have ended. */
export class AgentRun implements Entry {
  readonly record: Fields;
  readonly settings: AgentRunSettings;
  readonly events: EventLog = new EventLog();
  /** Resolves when the run has ended, with the response to a request that waits for it. */
  readonly result: Promise<Fields>;
  readonly #cancelling = new AbortController();
  #isRolledBack = false;
  #question: Interrupt | undefined;

  constructor(settings: AgentRunSettings) {
    this.settings = settings;
    const { id, thread, request, assistantId } = settings;
    const { metadata = {}, multitask_strategy = 'enqueue', ...kwargs } = request;
    const ids = { run_id: id, thread_id: thread.record.thread_id, assistant_id: assistantId };
    this.record = newRecord({ ...ids, status: 'pending', metadata, multitask_strategy, kwargs });
    this.#emit('metadata', { run_id: id, attempt: 1 });
    this.result = Promise.all(thread.active.values()).then(() => this.#run());
    thread.active.set(id, this.result);
    thread.record.status = 'busy';
  }

  /** Aborts the run's signal. The action `rollback` also removes the states that the run has added to its thread. */
  async cancel(action?: string | null): Promise<void> {
    this.#isRolledBack = action === 'rollback';
    this.#cancelling.abort();
    await this.result;
  }

  async #run(): Promise<Fields> {
    const { record } = this;
    const { id, thread, request, feedback } = this.settings;
    record.status = 'running';
    const { states } = thread;
    const turn = this.#turn();
    const order = await this.#saveStart(turn.input);
    const error = await withRun(fromHeaders({ 'runspan-trace': order }), () => this.#call(turn));
    const { aborted } = this.#cancelling.signal;
    const asked = this.#question && { __interrupt__: [this.#question] };
    const outputs = { ...thread.values, ...asked };
    await this.#save('patch', {
      end_time: nowIso(),
      outputs,
      ...(error && { error: `${error.error}: ${error.message}` }),
      ...(aborted && { extra: { metadata: { end_reason: 'cancelled' } } }),
    });
    if (this.#isRolledBack) thread.setStates(states);
    record.status = error ? 'error' : aborted || asked ? 'interrupted' : 'success';
    thread.active.delete(id);
    thread.record.status = thread.active.size > 0 ? 'busy' : error ? 'error' : thread.paused ? 'interrupted' : 'idle';
    if (error) this.#emit('error', error);
    if (request.feedback_keys?.length) this.#emit('feedback', feedback);
    this.events.end();
    return error ? { __error__: error } : outputs;
  }

  /** Returns the paused turn with the answer if the request resumes it, otherwise a new turn. */
  #turn(): Turn {
    const { thread, request } = this.settings;
    const { input = null, command } = request;
    const [before, turn] = [thread.values, thread.paused];
    thread.paused = undefined;
    if (turn !== undefined && command?.resume !== undefined)
      return { ...turn, answers: [...turn.answers, command.resume] };
    if (isFields(input)) thread.add(withUpdate(before, withMessageIds(input)), 'input');
    return { input, before, answers: [] };
  }

  /** Calls the assistant. Returns the error with which the run fails. */
  async #call(turn: Turn): Promise<{ error: string; message: string } | undefined> {
    const { thread, graph } = this.settings;
    const { values: start } = thread;
    this.#emit('values', start);
    try {
      await this.#steps(turn);
    } catch (thrown) {
      const [error, message] = thrown instanceof Error ? [thrown.name, thrown.message] : ['Error', String(thrown)];
      if (this.#question === undefined && !this.#cancelling.signal.aborted) return { error, message };
    }
    if (this.#question === undefined) return undefined;
    // The updates are withdrawn, because the function repeats them when it is called again.
    thread.add(start, 'loop', { name: graph, question: this.#question });
    thread.paused = turn;
    const asked = { __interrupt__: [this.#question] };
    this.#emit('updates', asked);
    this.#emit('values', { ...start, ...asked });
    return undefined;
  }

  async #steps({ input, before, answers }: Turn): Promise<void> {
    const { signal } = this.#cancelling;
    const { id, thread, assistant } = this.settings;
    const { thread_id, metadata } = thread.record;
    const given = [...answers];
    const steps = assistant(input, {
      runId: id,
      thread: { id: String(thread_id), values: before, metadata: fieldsOf(metadata) },
      signal,
      emit: (event, data) => this.#emit(event, data),
      interrupt: (value) => {
        if (given.length > 0) return given.shift();
        this.#question ??= { id: randomUUID(), value };
        throw new Error('The run waits for an answer');
      },
    })[Symbol.asyncIterator]();
    const aborted = once(signal, 'abort');
    try {
      for (;;) {
        signal.throwIfAborted();
        const step = await Promise.race([steps.next(), aborted]);
        if (Array.isArray(step)) continue;
        if (step.done === true) return;
        this.#update(withMessageIds(step.value));
      }
    } finally {
      ignoreRejection(steps.return?.());
    }
  }

  #update(update: Fields): void {
    const { id, thread, graph } = this.settings;
    for (const message of listOf(update.messages)) {
      this.#emit('messages', [message, { run_id: id, langgraph_node: graph }]);
      this.#emit('messages/complete', [message]);
    }
    this.#emit('updates', { [graph]: update });
    thread.add(withUpdate(thread.values, update), 'loop');
    this.#emit('values', thread.values);
  }

  #emit(name: string, data: unknown): void {
    const { thread, request } = this.settings;
    const { stream_mode: modes, stream_subgraphs: hasSubgraphs } = request;
    if (this.events.isOver || !isIn([modes ?? 'values'].flat(), name) || (name.includes('|') && !hasSubgraphs)) return;
    for (const { events } of [this, thread]) events.add(name, data);
  }

  /** Records the start of the run, below the caller's run. Returns the `dotted_order`. */
  async #saveStart(input: unknown): Promise<string> {
    const { id, caller, graph, project, request } = this.settings;
    const { thread_id, assistant_id } = this.record;
    const startUs = clock.nowUs();
    const order = dottedOrder(caller?.dottedOrder, startUs, id);
    await this.#save('post', {
      name: graph,
      run_type: 'chain',
      session_name: project,
      trace_id: caller?.traceId ?? id,
      ...(caller && { parent_run_id: caller.id }),
      dotted_order: order,
      start_time: isoTimestamp(startUs),
      inputs: isFields(input) ? input : { input },
      extra: { metadata: { ...request.metadata, thread_id, assistant_id } },
    });
    return order;
  }

  #save(kind: 'post' | 'patch', fields: RunFields): Promise<unknown> {
    return this.settings.save([{ kind, id: this.settings.id, fields, attachments: [] }]);
  }
}

/** Returns whether streams with these modes have an event. Events without a mode, such as `error`, are in all of them. */
export function isIn(modes: readonly string[], name: string): boolean {
  const [kind = ''] = name.split('|');
  const mode = kind === 'messages' ? 'messages-tuple' : kind.split('/', 1)[0];
  return modes.some((one) => one === mode) || !STREAM_MODES.some((known) => known === mode);
}
