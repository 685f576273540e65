import './runspan.ts';

export type { LogRecordLike, LogRecordProcessorLike } from './otel/log-record-like.ts';
export { RunLogRecordProcessor } from './otel/run-log-record-processor.ts';
export { RunSpanProcessor, type RunSpanProcessorOptions } from './otel/run-span-processor.ts';
export type {
  LinkLike,
  ResourceLike,
  ScopeLike,
  SpanContextLike,
  SpanEventLike,
  SpanLike,
  SpanProcessorLike,
} from './otel/span-like.ts';
