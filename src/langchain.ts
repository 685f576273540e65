/** Traces calls to LangChain and LangGraph. @packageDocumentation */
import './runspan.ts';

export { type GraphInterrupt, RunspanCallbackHandler, type StepEnd } from './integrations/langchain/handler.ts';
