import type { RunnableConfig } from '@langchain/core/runnables';
import type { StateSnapshot } from '@langchain/langgraph';
import type { z } from 'zod';
import { RequestError } from '../errors.ts';
import { fieldsOf, withMessages } from '../runs/messages.ts';
import { type Agent, failureText } from '../runs/run.ts';
import type { HISTORY, STATE_UPDATE } from './requests.ts';

type Place = { readonly checkpoint_id?: string | undefined; readonly checkpoint_ns?: string | undefined };

const HISTORY_STATES = 10;

/** Reads and writes the states of threads in the protocol's format. */
export class ThreadStates {
  readonly #agent: Agent;

  constructor(agent: Agent) {
    this.#agent = agent;
  }

  /** Returns the newest state of a thread. Rejects with a RequestError if the thread has no state. */
  async get(threadId: string): Promise<object> {
    const snapshot = await this.#agent.getState(configOf(threadId), { subgraphs: true });
    if (snapshot.createdAt === undefined) throw unknownThread(threadId);
    return stateOf(snapshot, threadId);
  }

  /** Returns the values of a checkpoint, or undefined if the checkpoint does not exist. */
  async valuesOf(threadId: string, checkpoint_id: string): Promise<unknown> {
    const { createdAt, values } = await this.#agent.getState(configOf(threadId, { checkpoint_id }));
    return createdAt === undefined ? undefined : values;
  }

  /** Changes the state of a thread, or creates its first state. Returns the newest state. */
  async update(threadId: string, update: z.infer<typeof STATE_UPDATE>): Promise<object> {
    const { values, checkpoint, checkpoint_id, as_node } = update;
    const place = checkpoint ?? { checkpoint_id: checkpoint_id ?? undefined };
    await this.#check(threadId, place);
    const written = withMessages(values ?? { messages: [] }, 'values', true);
    // The first state is written as if it were an input, so that the graph's first step runs next.
    const node = as_node ?? ((await this.#exists(threadId)) ? undefined : '__start__');
    await this.#agent.updateState(configOf(threadId, place), written, node).catch((error) => {
      throw new RequestError('invalid_state_update', failureText(error));
    });
    return this.get(threadId);
  }

  /** Returns the states of a thread, newest first. */
  async history(threadId: string, request: z.infer<typeof HISTORY>): Promise<object[]> {
    if (!(await this.#exists(threadId))) throw unknownThread(threadId);
    const { limit, metadata, checkpoint } = request;
    const before = beforeOf(request);
    await this.#check(threadId, checkpoint);
    await this.#check(threadId, { ...checkpoint, checkpoint_id: before });
    const states: object[] = [];
    const snapshots = this.#agent.getStateHistory(configOf(threadId, checkpoint), {
      limit: limit ?? HISTORY_STATES,
      ...(before === undefined ? {} : { before: configOf(threadId, { checkpoint_id: before }) }),
      ...(metadata ? { filter: metadata } : {}),
    });
    for await (const snapshot of snapshots) states.push(stateOf(snapshot, threadId));
    return states;
  }

  /** Whether a run has written at least one state of the thread. */
  async hasRun(threadId: string, runId: string): Promise<boolean> {
    const states = this.#agent.getStateHistory(configOf(threadId), { limit: 1, filter: { run_id: runId } });
    return (await states.next()).done !== true;
  }

  /**
   * Rejects if a checkpoint does not exist, because the graph would silently start over. Checkpoints of subgraphs are
   * not checked.
   */
  async #check(threadId: string, place: Place | null | undefined): Promise<void> {
    const { checkpoint_id, checkpoint_ns = '' } = place ?? {};
    if (checkpoint_id === undefined || checkpoint_ns !== '') return;
    if ((await this.valuesOf(threadId, checkpoint_id)) === undefined)
      throw new RequestError('no_such_checkpoint', `Thread ${threadId} has no checkpoint ${checkpoint_id}.`, 404);
  }

  async #exists(threadId: string): Promise<boolean> {
    return (await this.#agent.getState(configOf(threadId))).createdAt !== undefined;
  }
}

function unknownThread(threadId: string): RequestError {
  return new RequestError('not_found', `Thread ${threadId} not found`, 404);
}

function beforeOf({ before }: z.infer<typeof HISTORY>): string | undefined {
  if (typeof before === 'string') return before;
  const { checkpoint_id, configurable } = fieldsOf(before);
  return (checkpoint_id ?? fieldsOf(configurable).checkpoint_id) as string | undefined;
}

function configOf(threadId: string, place?: Place | null): RunnableConfig {
  const { checkpoint_id, checkpoint_ns = '' } = place ?? {};
  const checkpoint = checkpoint_id === undefined ? {} : { checkpoint_id };
  return { configurable: { thread_id: threadId, checkpoint_ns, ...checkpoint } };
}

function stateOf(snapshot: StateSnapshot, threadId: string): object {
  const { values, next, tasks, config, metadata, createdAt, parentConfig } = snapshot;
  return {
    values: values ?? {},
    next,
    tasks: tasks.map(({ id, name, error, interrupts = [], path, state, result }) => ({
      id,
      name,
      error: error === undefined ? null : ((error as Error).message ?? String(error)),
      interrupts,
      path: path ?? null,
      checkpoint: checkpointOf(state as RunnableConfig | undefined, threadId),
      state: state !== undefined && 'values' in state ? stateOf(state as StateSnapshot, threadId) : null,
      result: result ?? null,
    })),
    checkpoint: checkpointOf(config, threadId),
    metadata: metadata ?? {},
    created_at: createdAt ?? null,
    parent_checkpoint: parentConfig?.configurable?.checkpoint_id ? checkpointOf(parentConfig, threadId) : null,
  };
}

function checkpointOf(config: RunnableConfig | undefined, threadId: string): object | null {
  if (config?.configurable === undefined) return null;
  const { checkpoint_id, checkpoint_ns } = config.configurable;
  const namespace = typeof checkpoint_ns === 'string' ? checkpoint_ns : '';
  return { thread_id: threadId, checkpoint_id: checkpoint_id ?? null, checkpoint_ns: namespace, checkpoint_map: null };
}
