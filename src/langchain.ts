/** Traces calls to LangChain and LangGraph. @packageDocumentation */
import './runspan.ts';

export * from './integrations/langchain/handler.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
