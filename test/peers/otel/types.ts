// Compiled by test/peers/otel-sdk.test.ts.

import { NodeSDK } from '@opentelemetry/sdk-node';
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { RunSpanProcessor, type SpanLike } from '../../../dist/otel.js';

export const processor: SpanProcessor = new RunSpanProcessor({ shouldExport: 'all' });
export const spanLike = (span: ReadableSpan): SpanLike => span;
export const filtering: SpanProcessor = new RunSpanProcessor({ shouldExport: ({ kind }) => kind !== 2 });
export const provider = new BasicTracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
export const nodeProvider = new NodeTracerProvider({
  spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })],
});
export const sdk = new NodeSDK({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
