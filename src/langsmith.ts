/**
 * Replacements for the exports of LangSmith's JavaScript package that record runs. See `docs/from-langsmith.md`.
 * @packageDocumentation
 */
import './runspan.ts';

export { Client, type ClientConfig, type Feedback, type FeedbackCreate } from './langsmith/client.ts';
export type { Replica, ReplicaOptions } from './langsmith/destinations.ts';
export * from './langsmith/langchain.ts';
export * from './langsmith/openai.ts';
export { uuid7, uuid7FromTime } from './langsmith/posting.ts';
export * from './langsmith/run-tree.ts';
export * from './langsmith/sdk.ts';
export { getCurrentRunTree, isTracingEnabled, withRunTree } from './langsmith/storage.ts';
export {
  isRunnableConfigLike,
  isTraceableFunction,
  type Overloads,
  type ProcessInputs,
  type ProcessOutputs,
  ROOT,
  type SmartPromise,
  type TraceableConfig,
  type TraceableFunction,
  type TraceableSignature,
  traceable,
  type UnionToIntersection,
} from './langsmith/traceable.ts';
export type {
  AnyFunction,
  Attachments,
  KVMap,
  Run,
  RunCreate,
  RunnableConfigLike,
} from './langsmith/types.ts';
