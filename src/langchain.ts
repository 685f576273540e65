import './runspan.ts';

export {
  RunspanCallbackHandler,
  type RunspanCallbackHandlerOptions,
  type StepEnd,
} from './integrations/langchain-handler.ts';
