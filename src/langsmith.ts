import './runspan.ts';

export { Client, type ClientConfig, type Feedback, type FeedbackCreate } from './langsmith/client.ts';
export { type LangSmithExtra, type OpenAIType, type PatchedOpenAIClient, wrapOpenAI } from './langsmith/openai.ts';
export {
  getDefaultProjectName,
  type HeadersLike,
  isRunTree,
  type RunEvent,
  RunTree,
  type RunTreeConfig,
  uuid7,
  uuid7FromTime,
} from './langsmith/run-tree.ts';
export {
  createLangSmithProviderOptions,
  type WrapAISDKConfig,
  type WrapSDKOptions,
  wrapAISDK,
  wrapSDK,
} from './langsmith/sdk.ts';
export { getCurrentRunTree, isTracingEnabled, withRunTree } from './langsmith/storage.ts';
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
