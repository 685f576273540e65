import './runspan.ts';

export { RunPropagator, type RunPropagatorOptions } from './otel/run-propagator.ts';
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
