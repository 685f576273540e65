// Compiled by test/peers/otel-sdk.test.ts.

import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { RunSpanExporter, RunSpanProcessor, type SpanLike } from '../../../dist/otel.js';

export const processor: SpanProcessor = new RunSpanProcessor({ shouldExport: 'all' });
export const exporter: SpanExporter = new RunSpanExporter();
export const spanLike = (span: ReadableSpan): SpanLike => span;
export const filtering: SpanProcessor = new RunSpanProcessor({ shouldExport: ({ kind }) => kind !== 2 });
export const batch: SpanProcessor = new BatchSpanProcessor(new RunSpanExporter(), { maxQueueSize: 100 });
export const simple: SpanProcessor = new SimpleSpanProcessor(new RunSpanExporter({ shouldExport: 'llm' }));
export const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
export const nodeProvider = new NodeTracerProvider({
  spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' }), batch],
});
provider.addSpanProcessor(new RunSpanProcessor({ shouldExport: 'all' }));
