import type { Callbacks } from '@langchain/core/callbacks/manager';
import type { RunnableConfig } from '@langchain/core/runnables';
import type { StateSnapshot } from '@langchain/langgraph';
import type { ProtocolEvent } from '@langchain/langgraph/stream';

/** What is asked of an agent: any compiled graph with a checkpointer has it. */
export interface Agent {
  readonly name?: string;
  /** Where its states are kept: not known of an agent that does not say it. */
  readonly checkpointer?: unknown;
  /** What its states consist of, by name: not known of an agent that does not say it. */
  readonly channels?: Readonly<Record<string, unknown>>;
  streamEvents(input: unknown, options: AgentRunOptions): Promise<AsyncIterable<ProtocolEvent>>;
  getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<StateSnapshot>;
  getStateHistory(config: RunnableConfig, options?: HistoryOptions): AsyncIterableIterator<StateSnapshot>;
  updateState(
    config: RunnableConfig,
    values: Readonly<Record<string, unknown>>,
    asNode?: string,
  ): Promise<RunnableConfig>;
}

/** Told of what an agent does. */
export type Handlers = Extract<Callbacks, readonly unknown[]>;

export interface AgentRunOptions {
  readonly version: 'v3';
  readonly runId: string;
  readonly runName: string;
  readonly configurable: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly callbacks: Handlers;
  readonly recursionLimit: number;
  readonly signal: AbortSignal;
}

export interface HistoryOptions {
  readonly limit?: number;
  readonly before?: RunnableConfig;
  readonly filter?: Readonly<Record<string, unknown>>;
}
