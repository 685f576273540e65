import type { RunnableConfig } from '@langchain/core/runnables';
import type { StateSnapshot } from '@langchain/langgraph';
import type { Agent } from './agent.ts';
import { textOf } from './error-text.ts';
import { fieldsOf } from './fields.ts';
import { messagesFault } from './given-messages.ts';
import { messagesIn, sameAtStart, withMessages } from './logged-state.ts';
import { plainJson } from './plain-json.ts';

/** What a checkpoint of a thread is called by. */
export interface CheckpointPlace {
  readonly thread_id: string;
  readonly checkpoint_id: string | null;
  readonly checkpoint_ns: string;
  readonly checkpoint_map: null;
}

/** The same as a client gives it; the thread is the one that the request is for, whatever else stands there. */
interface GivenPlace {
  readonly checkpoint_id?: string | undefined;
  readonly checkpoint_ns?: string | undefined;
}

export interface HistoryRequest {
  readonly limit?: number | null | undefined;
  readonly before?:
    | string
    | { readonly checkpoint_id: string }
    | { readonly configurable: { readonly checkpoint_id: string } }
    | null
    | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
  readonly checkpoint?: GivenPlace | null | undefined;
  /** Of the messages of each state but the first, only those that differ from the state before it in the list. */
  readonly values?: 'changes' | null | undefined;
}

export interface StateUpdate {
  readonly values?: Readonly<Record<string, unknown>> | null | undefined;
  readonly checkpoint?: GivenPlace | null | undefined;
  /** In the place of `checkpoint`. */
  readonly checkpoint_id?: string | null | undefined;
  readonly as_node?: string | null | undefined;
}

const HISTORY_LIMIT = 10;

/** Reads and writes the checkpoints of threads, in the shapes of the protocol. */
export class ThreadStates {
  readonly #agent: Agent;

  constructor(agent: Agent) {
    this.#agent = agent;
  }

  /** The newest state, or undefined where the thread has none yet. */
  async get(threadId: string): Promise<object | undefined> {
    const snapshot = await this.#agent.getState({ configurable: { thread_id: threadId } }, { subgraphs: true });
    return idOf(snapshot.config) === undefined ? undefined : stateOf(snapshot, threadId);
  }

  /** Writes a state, the first of a thread or a further one. Throws a StateUpdateError that says what does not fit. */
  async update(
    threadId: string,
    { values, checkpoint, checkpoint_id, as_node }: StateUpdate,
  ): Promise<object | undefined> {
    const place = checkpoint ?? { checkpoint_id: checkpoint_id ?? undefined };
    await this.#check(threadId, place);
    const fault = messagesFault(values, true);
    if (fault !== undefined) throw new StateUpdateError(`values.${fault}`);
    const isFirst = !(await this.#isKnown(threadId));
    // As input is given: the first step of the graph is what comes next.
    const node = as_node ?? (isFirst ? '__start__' : undefined);
    try {
      await this.#agent.updateState(configOf(threadId, place), values ?? { messages: [] }, node);
    } catch (error) {
      throw new StateUpdateError(textOf(error as Error), { cause: error });
    }
    return this.get(threadId);
  }

  /** Newest first; the next page begins `before` the last of this one. Undefined where the thread has no state. */
  async history(
    threadId: string,
    { limit, before, metadata, checkpoint, values }: HistoryRequest,
  ): Promise<object[] | undefined> {
    if (!(await this.#isKnown(threadId))) return undefined;
    await this.#check(threadId, checkpoint);
    const states: object[] = [];
    const beforeId =
      typeof before === 'string' ? before : (before as { checkpoint_id?: string } | null | undefined)?.checkpoint_id;
    const nestedId = (before as { configurable?: { checkpoint_id: string } } | null | undefined)?.configurable
      ?.checkpoint_id;
    const cursor = beforeId ?? nestedId;
    await this.#check(threadId, { ...checkpoint, checkpoint_id: cursor });
    const snapshots = this.#agent.getStateHistory(configOf(threadId, checkpoint), {
      limit: limit ?? HISTORY_LIMIT,
      ...(cursor === undefined ? {} : { before: { configurable: { thread_id: threadId, checkpoint_id: cursor } } }),
      ...(metadata ? { filter: metadata } : {}),
    });
    let shown: readonly string[] = [];
    for await (const snapshot of snapshots) {
      const state = stateOf(snapshot, threadId);
      const messages = values === 'changes' ? messagesIn('values', snapshot.values) : undefined;
      if (messages === undefined) states.push(state);
      else {
        const texts = messages.map(plainJson);
        const kept = sameAtStart(shown, texts);
        states.push({ ...state, values: withMessages('values', snapshot.values, messages.slice(kept)), kept });
        shown = texts;
      }
    }
    return states;
  }

  /** The trace of a run of the thread; undefined where it has come to no checkpoint, each of which has both their ids. */
  async traceOf(threadId: string, runId: string): Promise<string | undefined> {
    const found = this.#agent.getStateHistory(configOf(threadId, undefined), { limit: 1, filter: { run_id: runId } });
    for await (const { metadata } of found) {
      const { trace_id: traceId } = fieldsOf(metadata);
      return typeof traceId === 'string' ? traceId : runId;
    }
    return undefined;
  }

  /** The graph would begin anew from a checkpoint that there is none of. Those of subgraphs it finds by itself. */
  async #check(threadId: string, place: GivenPlace | null | undefined): Promise<void> {
    const { checkpoint_id, checkpoint_ns = '' } = place ?? {};
    if (checkpoint_id === undefined || checkpoint_ns !== '') return;
    const { createdAt } = await this.#agent.getState(configOf(threadId, place));
    if (createdAt === undefined) throw new UnknownCheckpointError(threadId, checkpoint_id);
  }

  async #isKnown(threadId: string): Promise<boolean> {
    return idOf((await this.#agent.getState({ configurable: { thread_id: threadId } })).config) !== undefined;
  }
}

/** The graph does not take a state. */
export class StateUpdateError extends Error {
  override readonly name: string = 'StateUpdateError';
}

/** A thread has no such checkpoint. */
export class UnknownCheckpointError extends Error {
  override readonly name: string = 'UnknownCheckpointError';

  constructor(threadId: string, checkpointId: string) {
    super(`Thread ${threadId} has no checkpoint ${checkpointId}.`);
  }
}

function configOf(threadId: string, place: GivenPlace | null | undefined): RunnableConfig {
  const { checkpoint_id, checkpoint_ns = '' } = place ?? {};
  return {
    configurable: { thread_id: threadId, checkpoint_ns, ...(checkpoint_id === undefined ? {} : { checkpoint_id }) },
  };
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
      checkpoint: placeOf(state as RunnableConfig | undefined, threadId),
      state: state !== undefined && 'values' in state ? stateOf(state as StateSnapshot, threadId) : null,
      result: result ?? null,
    })),
    checkpoint: placeOf(config, threadId),
    metadata: metadata ?? {},
    created_at: createdAt ?? null,
    parent_checkpoint: idOf(parentConfig) === undefined ? null : placeOf(parentConfig, threadId),
  };
}

function placeOf(config: RunnableConfig | undefined, threadId: string): CheckpointPlace | null {
  if (config?.configurable === undefined) return null;
  const namespace: unknown = config.configurable.checkpoint_ns;
  return {
    thread_id: threadId,
    checkpoint_id: idOf(config) ?? null,
    checkpoint_ns: typeof namespace === 'string' ? namespace : '',
    checkpoint_map: null,
  };
}

function idOf(config: RunnableConfig | undefined): string | undefined {
  const id: unknown = config?.configurable?.checkpoint_id;
  return typeof id === 'string' && id !== '' ? id : undefined;
}
