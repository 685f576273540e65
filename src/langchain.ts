/** Traces calls to LangChain and LangGraph. @packageDocumentation */
import './runspan.ts';

export * from './integrations/langchain/handler.ts';
export type { TracedClientOptions } from './integrations/sdk-client.ts';
export type { ThreadOptions } from './run/run-options.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
