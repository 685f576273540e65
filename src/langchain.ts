import './runspan.ts';

export {
  type GraphInterrupt,
  RunspanCallbackHandler,
  type RunspanCallbackHandlerOptions,
  type StepEnd,
} from './integrations/langchain/handler.ts';
export type { FlushLimit, FlushResult, RunSink } from './run/sink.ts';
