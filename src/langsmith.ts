import './runspan.ts';

export { Client, type ClientConfig, type Feedback, type FeedbackCreate } from './langsmith/client.ts';
export { type OpenAIType, type PatchedOpenAIClient, wrapOpenAI, type LangSmithExtra } from './langsmith/openai.ts';
export {
  type HeadersLike,
  isRunTree,
  type RunEvent,
  RunTree,
  type RunTreeConfig,
} from './langsmith/run-tree.ts';
export { createLangSmithProviderOptions, type WrapAISDKConfig, type WrapSDKOptions, wrapAISDK, wrapSDK } from './langsmith/sdk.ts';
export { getCurrentRunTree, withRunTree } from './langsmith/storage.ts';
export {
  isRunnableConfigLike,
  isTraceableFunction,
  type ProcessInputs,
  type ProcessOutputs,
  ROOT,
  type RunnableConfigLike,
  type TraceableConfig,
  type TraceableFunction,
  traceable,
} from './langsmith/traceable.ts';
export type { Attachments, KVMap, RunCreate } from './langsmith/types.ts';
export * from './langsmith/unsupported.ts';
