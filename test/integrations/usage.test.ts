// Token counts and costs, as the documentation of each service describes them. Token details have the names used by
// LangSmith's wrappers (langsmith 0.10.5), so that its prices apply.
import Anthropic from '@anthropic-ai/sdk';
import { AIMessage } from '@langchain/core/messages';
import fc from 'fast-check';
import OpenAI from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { startRun, type UsageMetadata } from '#src/index.ts';
import { wrapModel } from '#src/integrations/ai-sdk/model.ts';
import { wrapAnthropic } from '#src/integrations/anthropic/client.ts';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/integrations/langchain/handler.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import type { Attributes } from '#src/otel/conventions/values.ts';
import { metadataOfUsage } from '#src/payload/usage.ts';
import { aiSdkUsage as usageOf } from '#src/services/ai-sdk/usage.ts';
import { messageCall } from '#src/services/anthropic/calls.ts';
import { converseCall } from '#src/services/bedrock/converse.ts';
import { openaiCalls } from '#src/services/openai/calls.ts';
import { record } from '../instrument/recorder.ts';
import { mapped } from '../otel/mapped.ts';
import { onlyRun, tea } from './local-openai.ts';
import { json, serveWire } from './wire-server.ts';

const openai = (usage: object, service_tier?: string) =>
  openaiCalls.chat.read({ choices: [], usage, service_tier }).usage;
const anthropic = (usage: object) => messageCall.read({ content: [], usage }).usage;

const chat = {
  prompt_tokens: 100,
  completion_tokens: 50,
  total_tokens: 150,
  prompt_tokens_details: { cached_tokens: 40 },
  completion_tokens_details: { reasoning_tokens: 20, accepted_prediction_tokens: 3, rejected_prediction_tokens: 4 },
};
const counts = (input_tokens: number, output_tokens: number, total_tokens = input_tokens + output_tokens) => ({
  input_tokens,
  output_tokens,
  total_tokens,
});
const predicted = { accepted_prediction: 3, rejected_prediction: 4 };
const plain = {
  ...counts(100, 50),
  input_token_details: { cache_read: 40 },
  output_token_details: { reasoning: 20, ...predicted },
};
const written = { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 };
const durations = { ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 3 };
const message = { input_tokens: 7, output_tokens: 1, cache_read_input_tokens: 4 };
const major6 = { inputTokens: { total: 16, cacheRead: 4, cacheWrite: 5 }, outputTokens: { total: 3, reasoning: 1 } };

test.each<[string, unknown, object | undefined]>([
  ['OpenAI, tier `default`', openai(chat, 'default'), plain],
  [
    'OpenAI, tier `flex`',
    openai(chat, 'flex'),
    {
      ...counts(100, 50),
      input_token_details: { flex: 60, flex_cache_read: 40 },
      output_token_details: { flex: 30, flex_reasoning: 20, ...predicted },
    },
  ],
  ['OpenAI, embeddings', openai({ prompt_tokens: 4, total_tokens: 4 }), { input_tokens: 4, total_tokens: 4 }],
  ['OpenAI, no counts', openai({}), undefined],
  [
    'Anthropic, cache writes of unknown duration',
    anthropic({ ...message, cache_creation_input_tokens: 5 }),
    { ...counts(16, 1), input_token_details: { cache_read: 4, cache_creation: 5 } },
  ],
  [
    'Anthropic, cache writes of one known duration',
    anthropic({ ...message, cache_creation_input_tokens: 9, cache_creation: { ephemeral_1h_input_tokens: 3 } }),
    { ...counts(20, 1), input_token_details: { cache_read: 4, ephemeral_1hr_input_tokens: 3, cache_creation: 6 } },
  ],
  // The tokens of a compaction are not in the top-level fields, see `BetaUsage.iterations` of the SDK.
  [
    'Anthropic, a compaction, and an iteration of another model',
    anthropic({
      input_tokens: 5,
      output_tokens: 3,
      cache_read_input_tokens: 2,
      iterations: [
        { type: 'compaction', input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 7 },
        { type: 'message', input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 2 },
        { type: 'advisor_message', model: 'another', input_tokens: 50, output_tokens: 50 },
      ],
    }),
    { ...counts(114, 23), input_token_details: { cache_read: 9 } },
  ],
  ['Anthropic, a stream without a start', anthropic({ output_tokens: 3 }), { output_tokens: 3 }],
  [
    'AI SDK 6, cache writes by duration',
    usageOf(major6, { anthropic: { usage: { ...message, output_tokens: 3, cache_creation: written } } }),
    { ...counts(16, 3), input_token_details: { cache_read: 4, ...durations } },
  ],
  [
    'AI SDK 6, tier `flex`',
    usageOf(major6, { openai: { serviceTier: 'flex' } }),
    {
      ...counts(16, 3),
      input_token_details: { flex: 12, flex_cache_read: 4, cache_creation: 5 },
      output_token_details: { flex: 2, flex_reasoning: 1 },
    },
  ],
  ['AI SDK, embeddings', usageOf({ tokens: 4 }, undefined), { input_tokens: 4, total_tokens: 4 }],
  ['AI SDK, an unknown count', usageOf({ promptTokens: Number.NaN, completionTokens: 2 }, {}), { output_tokens: 2 }],
  ['AI SDK, no counts', usageOf({ inputTokens: { total: undefined }, outputTokens: {} }, {}), undefined],
  ...[undefined, null, 7, 'x', [], { inputTokens: 'many' }].map((usage): [string, unknown, undefined] => [
    `AI SDK, ${JSON.stringify(usage)}`,
    usageOf(usage, usage),
    undefined,
  ]),
])('the token counts of %s', (_, usage, expected) => {
  expect(usage).toEqual(expected);
});

/** A response with a usage, and how programs get it: with `fetch`, or with the client of an SDK. */
interface Format {
  readonly path: string;
  readonly body: object;
  answer(usage: object): object;
  client?(url: string): PromiseLike<unknown>;
}

const said = { role: 'assistant', content: 'Tea.' };
const body = { model: 'm', messages: tea };
const openaiFormat: Format = {
  path: '/v1/chat/completions',
  body,
  answer: (usage) => ({ model: 'm', choices: [{ index: 0, message: said, finish_reason: 'stop' }], usage }),
  client: (url) => wrapOpenAI(new OpenAI({ apiKey: 'none', baseURL: `${url}/v1` })).chat.completions.create(body),
};
const anthropicFormat: Format = {
  path: '/v1/messages',
  body: { ...body, max_tokens: 9 },
  answer: (usage) => ({ type: 'message', content: [{ type: 'text', text: 'Tea.' }], usage }),
  client: (url) =>
    wrapAnthropic(new Anthropic({ apiKey: 'none', baseURL: url })).messages.create({ ...body, max_tokens: 9 }),
};
const geminiFormat: Format = {
  path: '/v1beta/models/m:generateContent',
  body: { contents: [] },
  answer: (usageMetadata) => ({ candidates: [], usageMetadata }),
};
const cohereFormat: Format = { path: '/v2/chat', body, answer: (usage) => ({ message: said, usage }) };
const ollamaFormat: Format = { path: '/api/chat', body, answer: (usage) => ({ message: said, ...usage }) };
const prompt = (
  prompt_tokens: number,
  completion_tokens: number,
  total_tokens = prompt_tokens + completion_tokens,
) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens,
});
const read = (cache_read: number, more: object = {}) => ({ input_token_details: { cache_read, ...more } });
const thought = (reasoning: number) => ({ output_token_details: { reasoning } });
const hit = (cached_tokens: number, more: object = {}) => ({ prompt_tokens_details: { cached_tokens, ...more } });
const thinking = (reasoning_tokens: number) => ({ completion_tokens_details: { reasoning_tokens } });

test.each<[service: string, format: Format | undefined, usage: object, expected: object]>([
  // https://docs.x.ai/developers/cost-tracking
  [
    'xAI, whose output excludes reasoning',
    openaiFormat,
    { ...prompt(32, 9, 135), ...hit(6), ...thinking(94), cost_in_usd_ticks: 37_756_000 },
    { ...counts(32, 103), ...read(6), ...thought(94), total_cost: 0.0037756 },
  ],
  ['Moonshot', openaiFormat, { ...prompt(19, 21), cached_tokens: 10 }, { ...counts(19, 21), ...read(10) }],
  // https://openrouter.ai/docs/use-cases/usage-accounting
  [
    'OpenRouter',
    openaiFormat,
    { ...prompt(20, 5), cost: 0.25, is_byok: false, cost_details: { upstream_inference_cost: 0.25 } },
    { ...counts(20, 5), total_cost: 0.25 },
  ],
  [
    'OpenRouter with an own key',
    openaiFormat,
    { ...prompt(20, 5), cost: 0.25, is_byok: true, cost_details: { upstream_inference_cost: 5 } },
    { ...counts(20, 5), total_cost: 5.25 },
  ],
  [
    'Perplexity',
    openaiFormat,
    { ...prompt(8, 30), cost: { input_tokens_cost: 0.25, request_cost: 0.5, total_cost: 0.75 } },
    { ...counts(8, 30), total_cost: 0.75 },
  ],
  [
    'LiteLLM',
    openaiFormat,
    { ...prompt(2000, 5), ...hit(500, { cache_creation_tokens: 1400 }), cache_creation_input_tokens: 1400 },
    { ...counts(2000, 5), ...read(500, { cache_creation: 1400 }) },
  ],
  // https://api-docs.deepseek.com/guides/kv_cache
  [
    'DeepSeek',
    openaiFormat,
    { ...prompt(12, 9), prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 4, ...thinking(3) },
    { ...counts(12, 9), ...read(8), ...thought(3) },
  ],
  // https://www.alibabacloud.com/help/model-studio/context-cache
  [
    'Qwen',
    openaiFormat,
    {
      ...prompt(3019, 104),
      ...hit(0, { cache_creation: { ephemeral_5m_input_tokens: 2048 }, cache_creation_input_tokens: 2048 }),
    },
    { ...counts(3019, 104), ...read(0, { ephemeral_5m_input_tokens: 2048 }) },
  ],
  // https://docs.z.ai/guides/capabilities/cache
  ['Z.ai', openaiFormat, { ...prompt(1200, 300), ...hit(800) }, { ...counts(1200, 300), ...read(800) }],
  ["Vercel's gateway", openaiFormat, { ...prompt(20, 9), cost: '0.0045' }, { ...counts(20, 9), total_cost: 0.0045 }],
  ['Groq', openaiFormat, { queue_time: 0.03, ...prompt(18, 5), total_time: 0.02 }, counts(18, 5)],
  ['Mistral', openaiFormat, { prompt_audio_seconds: null, ...prompt(14, 6) }, counts(14, 6)],
  // https://ai.google.dev/api/generate-content#UsageMetadata
  [
    'Gemini, with thoughts and the results of its tools',
    geminiFormat,
    {
      promptTokenCount: 5,
      toolUsePromptTokenCount: 2,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 3,
      totalTokenCount: 14,
    },
    { ...counts(7, 7), input_token_details: { tool_use: 2 }, ...thought(3) },
  ],
  ['Gemini, a blocked prompt', geminiFormat, { promptTokenCount: 5, totalTokenCount: 5 }, counts(5, 0)],
  // https://docs.claude.com/en/docs/build-with-claude/prompt-caching#1-hour-cache-duration
  [
    'Anthropic',
    anthropicFormat,
    { ...message, cache_creation_input_tokens: 5, cache_creation: written },
    { ...counts(16, 1), ...read(4, durations) },
  ],
  // https://docs.cohere.com/reference/chat
  [
    'Cohere',
    cohereFormat,
    { billed_units: { input_tokens: 2, output_tokens: 3 }, tokens: { input_tokens: 5, output_tokens: 3 } },
    counts(5, 3),
  ],
  ['Ollama', ollamaFormat, { prompt_eval_count: 5, eval_count: 3, eval_duration: 7 }, counts(5, 3)],
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html
  [
    'Bedrock, whose input excludes cached tokens',
    undefined,
    { inputTokens: 20, outputTokens: 5, totalTokens: 30, cacheReadInputTokens: 5 },
    { ...counts(25, 5), ...read(5) },
  ],
])(
  'the usage of %s is the same with `fetch`, its client, the AI SDK and LangChain',
  async (_, format, usage, expected) => {
    const usageWith = async (call: () => unknown): Promise<unknown> => {
      const recorder = record();
      await call();
      recorder.stop();
      return onlyRun(recorder.runs).extra?.metadata?.usage_metadata;
    };
    const ways: Record<string, unknown> = {
      aiSdk: await usageWith(() => {
        const raw = { inputTokens: {}, outputTokens: {}, raw: usage };
        const doGenerate = async () => ({ content: [], finishReason: 'stop', usage: raw });
        return wrapModel({ modelId: 'm', provider: 'p', doGenerate }).doGenerate();
      }),
      langChain: await usageWith(() => {
        const handler = new RunspanCallbackHandler();
        const response_metadata = format === ollamaFormat ? usage : { usage };
        handler.handleChatModelStart({}, [[]], 'id');
        handler.handleLLMEnd(
          { generations: [[{ message: new AIMessage({ content: 'Tea.', response_metadata }) }]] },
          'id',
        );
      }),
    };
    if (format === undefined) ways.wrapBedrock = converseCall.read({ output: {}, usage }).usage;
    if (format === openaiFormat) ways.lastChoice = openaiCalls.chat.read({ choices: [{ usage }] }).usage;
    if (format !== undefined) {
      const { path, body, answer, client } = format;
      const url = await serveWire(json(answer(usage)));
      if (client !== undefined) ways.client = await usageWith(() => client(url));
      onTestFinished(recordFetch());
      ways.fetch = await usageWith(async () => {
        const response = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
        await response.text();
      });
    }
    for (const [way, found] of Object.entries(ways)) expect([way, found]).toEqual([way, expected]);
  },
);

/** The usage of one call as each way of recording reports it: an application, three SDKs, and spans. */
function everyUsage(input: number, output: number, total: number | undefined, read: number, written: number) {
  const recorder = record();
  const run = startRun({ name: 'call', runType: 'llm' });
  run.set({
    usage: {
      input_tokens: input,
      output_tokens: output,
      ...(total !== undefined && { total_tokens: total }),
      input_token_details: { cache_read: read, cache_creation: written },
    },
  });
  run.end();
  const ofSpan = (attributes: Attributes) => mapped(attributes).metadata.usage_metadata;
  return {
    application: recorder.runs[0]?.extra?.metadata?.usage_metadata,
    openai: openai({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: total,
      prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    }),
    aiSdk: usageOf(
      {
        inputTokens: { total: input, cacheRead: read, cacheWrite: written },
        outputTokens: { total: output },
        totalTokens: total,
      },
      {},
    ),
    genAi: ofSpan({
      'gen_ai.operation.name': 'chat',
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': output,
      'gen_ai.usage.total_tokens': total,
      'gen_ai.usage.cache_read.input_tokens': read,
      'gen_ai.usage.cache_write.input_tokens': written,
    }),
    openInference: ofSpan({
      'openinference.span.kind': 'LLM',
      'llm.token_count.prompt': input,
      'llm.token_count.completion': output,
      'llm.token_count.total': total,
      'llm.token_count.prompt_details.cache_read': read,
      'llm.token_count.prompt_details.cache_write': written,
    }),
    aiSdkSpan: ofSpan({
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.usage.inputTokens': input,
      'ai.usage.outputTokens': output,
      'ai.usage.totalTokens': total,
      'ai.usage.inputTokenDetails.cacheReadTokens': read,
      'ai.usage.inputTokenDetails.cacheWriteTokens': written,
    }),
  };
}

test.each<[string, Parameters<typeof everyUsage>, Parameters<typeof counts>]>([
  ['exclude cached tokens', [12, 5, undefined, 100, 0], [112, 5, 117]],
  ['exclude cached tokens, as does the total', [12, 5, 17, 100, 0], [112, 5, 117]],
  ['exclude cached tokens, and the total includes them', [200, 5, 305, 100, 0], [300, 5, 305]],
  ['exclude tokens that are read from and written to a cache', [12, 5, 17, 8, 7], [27, 5, 32]],
  ['include cached tokens', [12, 5, 17, 8, 4], [12, 5, 17]],
  ['include cached tokens, and the total is another number', [12, 5, 10, 8, 4], [12, 5, 10]],
])('usage whose input tokens %s is the same however it is recorded', (_, given, expected) => {
  const details = { cache_read: given[3], cache_creation: given[4] };
  for (const [way, usage] of Object.entries(everyUsage(...given)))
    expect([way, usage]).toEqual([way, { ...counts(...expected), input_token_details: details }]);
});

test('any usage adds up or says that it does not, invents no count, and is the same however it is recorded', () => {
  const tokens = fc.oneof(fc.nat(20), fc.nat(1_000_000));
  const nothing = fc.constant(undefined);
  fc.assert(
    fc.property(tokens, tokens, fc.oneof(nothing, tokens), tokens, tokens, (input, output, other, read, written) => {
      for (const total of [other, input + output, input + output + read + written]) {
        const { application, ...others } = everyUsage(input, output, total, read, written);
        for (const usage of Object.values(others)) expect(usage).toEqual(application);
        const usage = application as Required<UsageMetadata>;
        const isSum = usage.input_tokens + usage.output_tokens === usage.total_tokens;
        expect('usage_check' in metadataOfUsage(usage)).toBe(!isSum);
        if (!isSum) expect(usage).toMatchObject(counts(input, output, total));
        expect([input, input + read + written]).toContain(usage.input_tokens);
        expect(usage.output_tokens).toBe(output);
        expect(usage.input_token_details).toEqual({ cache_read: read, cache_creation: written });
      }
    }),
  );
});

test('the running totals of a stream never shrink', () => {
  const usage = fc.record({ input_tokens: fc.nat(9), output_tokens: fc.nat(9) }, { requiredKeys: [] });
  fc.assert(
    fc.property(fc.array(usage, { minLength: 1 }), (usages) => {
      const fold = messageCall.fold?.();
      fold?.add({ type: 'message_start', message: { content: [], usage: usages[0] } }, false);
      for (const later of usages) fold?.add({ type: 'message_delta', delta: {}, usage: later }, false);
      const most = (key: 'input_tokens' | 'output_tokens') => {
        const known = usages.map((one) => one[key]).filter((count) => count !== undefined);
        return known.length === 0 ? undefined : Math.max(...known);
      };
      const { input_tokens, output_tokens } = messageCall.read(fold?.result()).usage ?? {};
      expect([input_tokens, output_tokens]).toEqual([most('input_tokens'), most('output_tokens')]);
    }),
  );
});

const alone = { input_tokens: 3, total_cost: 0.5 };

test.each([1_000_000_001, 1e21, -1, 1.5])('the token count %s of a service is refused', (invalid) => {
  expect(openai({ prompt_tokens: 3, completion_tokens: invalid, cost: 0.5 })).toEqual(alone);
  expect(openai({ prompt_tokens: invalid, completion_tokens: invalid })).toBeUndefined();
  expect(anthropic({ ...message, cache_read_input_tokens: invalid })).toEqual(counts(7, 1));
});

test.each([1_000_000_001, 1e21, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
  'the token count %s of an application is refused',
  (invalid) => {
    const recorder = record();
    const run = startRun({ name: 'call', runType: 'llm' });
    run.set({ usage: { ...alone, output_tokens: invalid, output_token_details: { audio: invalid } } });
    run.end();
    expect(recorder.runs[0]?.extra?.metadata?.usage_metadata).toEqual(alone);
  },
);

test.each([-0.5, Number.NaN, Number.POSITIVE_INFINITY])('the cost %s is refused', (cost) => {
  expect(openai({ prompt_tokens: 3, completion_tokens: 1, cost })).toEqual(counts(3, 1));
});

test.each([
  [{}, { usage_metadata: counts(3, 5) }],
  [{ total_tokens: 9 }, { usage_metadata: counts(3, 5, 9), usage_check: '3 input + 5 output tokens, but 9 in total' }],
])('usage of an application with %j gets a total, or a text if the total differs', (total, expected) => {
  const recorder = record();
  const run = startRun({ name: 'call', runType: 'llm' });
  run.set({ usage: { input_tokens: 3, output_tokens: 5, ...total } });
  run.end();
  expect(recorder.runs[0]?.extra?.metadata).toMatchObject(expected);
});
