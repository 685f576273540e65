import { SpanStatusCode } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { runNamed, setUp } from './set-up.ts';

/** Returns the end reason of the run of a span. */
function endReason(attributes: Record<string, string | string[]>, { scope = 'ai', hasFailed = false } = {}): unknown {
  const { provider, recorder } = setUp();
  const span = provider.getTracer(scope).startSpan('call', { attributes });
  if (hasFailed) span.setStatus({ code: SpanStatusCode.ERROR, message: 'no' });
  span.end();
  return runNamed(recorder, 'call').extra?.metadata?.end_reason;
}

// `onAbort` in packages/otel/src of vercel/ai, and streamText of its versions 5 and 6, end spans as they are.
test.each([
  'ai.generateText',
  'ai.streamText',
  'ai.streamText.doStream',
  'ai.generateText.doGenerate',
  'ai.generateObject',
  'ai.streamObject.doStream',
])('%s without a finish reason is cancelled', (operation) => {
  const attributes = { 'ai.operationId': operation };
  expect(endReason(attributes)).toBe('cancelled');
  expect(endReason({ ...attributes, 'ai.response.finishReason': 'stop' })).toBeUndefined();
  expect(endReason(attributes, { hasFailed: true })).toBeUndefined();
});

test.each(['ai.toolCall', 'ai.embed', 'ai.embed.doEmbed', 'ai.rerank'])('%s is never cancelled', (operation) => {
  expect(endReason({ 'ai.operationId': operation })).toBeUndefined();
});

test.each(['chat', 'invoke_agent'])('%s of version 7 without a finish reason is cancelled', (operation) => {
  const attributes = { 'gen_ai.operation.name': operation };
  expect(endReason(attributes, { scope: 'gen_ai' })).toBe('cancelled');
  expect(endReason({ ...attributes, 'gen_ai.response.finish_reasons': ['stop'] }, { scope: 'gen_ai' })).toBeUndefined();
});

test('spans of other libraries, which may have no finish reason, are not cancelled', () => {
  expect(endReason({ 'gen_ai.operation.name': 'chat' }, { scope: 'openai' })).toBeUndefined();
  expect(endReason({ 'gen_ai.operation.name': 'agent_step' }, { scope: 'gen_ai' })).toBeUndefined();
});
