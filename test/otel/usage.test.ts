// Token counts and costs of spans, under the attribute names that emitters use.
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/client-inference.md
// https://langfuse.com/docs/observability/features/token-and-cost-tracking#openai-schema
import { type Attributes, SpanKind } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { flat, mapped } from './mapped.ts';
import { below, runNamed, setUp } from './set-up.ts';

const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' };
const counted = { 'gen_ai.usage.input_tokens': 20, 'gen_ai.usage.output_tokens': 7 };
const counts = { input_tokens: 20, output_tokens: 7, total_tokens: 27 };

function usageOf(attributes: Attributes, kind = SpanKind.INTERNAL): unknown {
  const { outputs, metadata } = mapped(attributes, { kind });
  expect(metadata.usage_metadata).toEqual(outputs?.usage_metadata);
  return outputs?.usage_metadata;
}

const details = (usage: object) => ({
  'langfuse.observation.type': 'generation',
  'langfuse.observation.usage_details': JSON.stringify(usage),
});

const called = (usage: object) => ({ ...chat, ...counted, ...flat('gen_ai.usage', usage) });
const cached = { input_token_details: { cache_read: 16 }, output_token_details: { reasoning: 5 } };
const ephemeral = { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 7 };
const ephemeralOfRun = { ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 7 };

test.each<[string, Attributes, object]>([
  [
    "Langfuse's, in OpenAI's form",
    details({
      prompt_tokens: 20,
      completion_tokens: 7,
      total_tokens: 27,
      prompt_tokens_details: { cached_tokens: 16, audio_tokens: 1 },
      completion_tokens_details: { reasoning_tokens: 5 },
    }),
    { ...cached, input_token_details: { cache_read: 16, audio: 1 } },
  ],
  [
    "Langfuse's, in the form of OpenAI's responses",
    details({
      input_tokens: 20,
      output_tokens: 7,
      input_tokens_details: { cached_tokens: 16 },
      output_tokens_details: { reasoning_tokens: 5 },
    }),
    cached,
  ],
  [
    "Langfuse's, with Anthropic's names and no cached tokens in the input",
    details({ input: 5, output: 7, cache_read_input_tokens: 10, cache_creation_input_tokens: 5 }),
    { input_token_details: { cache_read: 10, cache_creation: 5 } },
  ],
  [
    "Langfuse's, with details in addition to input and output",
    details({ input: 4, input_cached_tokens: 16, output: 2, output_reasoning_tokens: 5, total: 27 }),
    cached,
  ],
  [
    'cache writes with their current name',
    called({ cache_write: { input_tokens: 9 } }),
    { input_token_details: { cache_creation: 9 } },
  ],
  [
    "cache writes of both durations in Anthropic's SDK",
    { ...called({ cache_write: { input_tokens: 9 } }), ...flat('anthropic.usage.cache_creation', ephemeral) },
    { input_token_details: ephemeralOfRun },
  ],
  [
    'a priced service tier of OpenAI',
    {
      ...called({ cache_read: { input_tokens: 8 }, reasoning: { output_tokens: 3 } }),
      'openai.response.service_tier': 'flex',
    },
    { input_token_details: { flex: 12, flex_cache_read: 8 }, output_token_details: { flex: 4, flex_reasoning: 3 } },
  ],
  ['a cost', called({ cost: 0.5 }), { total_cost: 0.5 }],
  [
    'provider metadata of the AI SDK',
    {
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.usage.inputTokens': 20,
      'ai.usage.outputTokens': 7,
      'ai.usage.inputTokenDetails.noCacheTokens': 11,
      'ai.usage.inputTokenDetails.cacheWriteTokens': 9,
      'ai.response.providerMetadata': JSON.stringify({
        anthropic: { usage: { input_tokens: 11, output_tokens: 7, cache_creation: ephemeral } },
        openai: { serviceTier: 'priority' },
      }),
    },
    { input_token_details: { ...ephemeralOfRun, priority: 20 }, output_token_details: { priority: 7 } },
  ],
])('usage is read from %s', (_, attributes, expected) => {
  expect(usageOf(attributes)).toEqual({ ...counts, ...expected });
});

test.each([1_000_000_001, 1e21, -1, 1.5, Number.POSITIVE_INFINITY, Number.NaN, '1e21'])(
  'the token count %s is refused and stays in the metadata',
  (invalid) => {
    const run = mapped({ ...chat, 'gen_ai.usage.input_tokens': invalid });
    expect(run.outputs).toBeUndefined();
    expect(run.metadata).not.toHaveProperty('usage_metadata');
    expect(run.metadata).toHaveProperty(['gen_ai.usage.input_tokens']);
    expect(usageOf({ ...chat, ...counted, 'gen_ai.usage.output_tokens': invalid })).toEqual({ input_tokens: 20 });
    expect(usageOf(details({ input: 20, output: invalid }))).toEqual({ input_tokens: 20 });
    const ofLangSmith = { input_tokens: 20, output_tokens: invalid, input_cost_details: { audio: 0.5 } };
    expect(usageOf({ ...chat, 'langsmith.usage_metadata': ofLangSmith as unknown as string })).toEqual({
      input_tokens: 20,
      input_cost_details: { audio: 0.5 },
    });
  },
);

test('the token count 1,000,000,000 is recorded, and a cost may be larger', () => {
  const attributes = { ...chat, 'gen_ai.usage.input_tokens': 1_000_000_000, 'gen_ai.usage.cost': 2_000_000_000.5 };
  expect(usageOf(attributes)).toEqual({ input_tokens: 1_000_000_000, total_cost: 2_000_000_000.5 });
});

test('a service tier alone is not usage', () => {
  expect(usageOf({ ...chat, 'openai.response.service_tier': 'flex' })).toBeUndefined();
});

describe('the usage of an agent', () => {
  const ofOpenInference = {
    'openinference.span.kind': 'AGENT',
    'llm.token_count.prompt': 20,
    'llm.token_count.completion': 7,
  };
  const agent = { 'gen_ai.operation.name': 'invoke_agent', ...counted };
  const step = { 'gen_ai.operation.name': 'agent_step', ...counted };

  test('is recorded for an agent in another service or of OpenInference, but not for the sum of nested calls', () => {
    expect(usageOf(agent, SpanKind.CLIENT)).toEqual(counts);
    expect(usageOf(ofOpenInference)).toEqual(counts);
    expect(usageOf(agent)).toBeUndefined();
    expect(usageOf(step, SpanKind.CLIENT)).toBeUndefined();
  });

  test('is omitted if a model call below it has usage', () => {
    const { tracer, recorder } = setUp();
    const outer = tracer.startSpan('outer', { attributes: ofOpenInference });
    const inner = tracer.startSpan('step', {}, below(outer));
    tracer.startSpan('call', { attributes: { ...chat, ...counted } }, below(inner)).end();
    inner.end();
    tracer.startSpan('other', { attributes: chat }, below(outer)).end();
    outer.end();
    expect(runNamed(recorder, 'call').outputs?.usage_metadata).toEqual(counts);
    expect(runNamed(recorder, 'outer').outputs).not.toHaveProperty('usage_metadata');
    expect(runNamed(recorder, 'outer').extra?.metadata).toMatchObject({ 'llm.token_count.prompt': 20 });
  });
});
