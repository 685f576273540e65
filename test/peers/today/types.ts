// Compiled by test/peers/otel-sdk.test.ts.
import { NodeSDK } from '@opentelemetry/sdk-node';
import { type ReadableSpan, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { RunSpanProcessor, type SpanLike } from '../../../dist/otel.js';

export const processor: SpanProcessor = new RunSpanProcessor({ shouldExport: 'all' });
export const spanLike = (span: ReadableSpan): SpanLike => span;
export const filtering: SpanProcessor = new RunSpanProcessor({ shouldExport: ({ kind }) => kind !== 2 });
export const provider = new TracerProvider({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
export const sdk = new NodeSDK({ spanProcessors: [new RunSpanProcessor({ shouldExport: 'all' })] });
