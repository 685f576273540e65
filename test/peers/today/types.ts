// Compiled by test/peers/otel-sdk.test.ts.
import { NodeSDK } from '@opentelemetry/sdk-node';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { RunSpanExporter, RunSpanProcessor, type SpanLike } from '../../../dist/otel.js';

export const processor: SpanProcessor = new RunSpanProcessor({ shouldExport: 'all' });
export const exporter: SpanExporter = new RunSpanExporter();
export const spanLike = (span: ReadableSpan): SpanLike => span;
export const filtering: SpanProcessor = new RunSpanProcessor({ shouldExport: ({ kind }) => kind !== 2 });
export const batch: SpanProcessor = new BatchSpanProcessor({ exporter: new RunSpanExporter() });
export const simple: SpanProcessor = new SimpleSpanProcessor({
  exporter: new RunSpanExporter({ shouldExport: 'llm' }),
});
export const provider = new TracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' }), batch] });
export const sdk = new NodeSDK({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
export const exporting = new NodeSDK({ traceExporter: new RunSpanExporter() });
