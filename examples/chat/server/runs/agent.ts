import type { Callbacks } from '@langchain/core/callbacks/manager';
import type { RunnableConfig } from '@langchain/core/runnables';
import type { StateSnapshot } from '@langchain/langgraph';
import type { ProtocolEvent } from '@langchain/langgraph/stream';

/** The methods of an agent that the chat calls. Any compiled graph with a checkpointer has them. */
export interface Agent {
  readonly name?: string | undefined;
  readonly checkpointer?: unknown;
  readonly channels?: object;
  // biome-ignore lint/suspicious/noExplicitAny: The types of graphs are generic over their state, which is unknown here.
  streamEvents(input: any, options: any): Promise<AsyncIterable<ProtocolEvent>> | AsyncIterable<ProtocolEvent>;
  getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<StateSnapshot>;
  getStateHistory(
    config: RunnableConfig,
    options?: { limit?: number; before?: RunnableConfig; filter?: Record<string, unknown> },
  ): AsyncIterableIterator<StateSnapshot>;
  // biome-ignore lint/suspicious/noExplicitAny: As above.
  updateState(config: any, values: any, asNode?: string): Promise<RunnableConfig>;
}

export type Handlers = Extract<Callbacks, readonly unknown[]>;
