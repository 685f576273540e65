/** Records OpenTelemetry spans and log records as runs. @packageDocumentation */
import './runspan.ts';

export type { SpanVocabulary } from './otel/conventions/span-vocabulary.ts';
export type { ObserveOptions } from './otel/meters.ts';
export { observeRuns } from './otel/observe-runs.ts';
export { observeStats } from './otel/observe-stats.ts';
export * from './otel/run-log-record-processor.ts';
export { RunPropagator, type RunPropagatorOptions } from './otel/run-propagator.ts';
export { RunSampler, type RunSamplerOptions } from './otel/run-sampler.ts';
export { RunSpanProcessor, type RunSpanProcessorOptions } from './otel/run-span-processor.ts';
export { LLM_SCOPES, type ShouldExport } from './otel/span-filter.ts';
export type * from './otel/span-like.ts';
