// Models of the AI SDK: those of its own provider, and models that pass on the usage of a service.
import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, test } from 'vitest';
import { wrapModel } from '#src/integrations/ai-sdk/model.ts';
import { messagesOfInputs, messagesOfOutputs } from '#src/services/conversation.ts';
import { record } from '../instrument/recorder.ts';
import { chunksOf, onlyRun } from '../integrations/local-openai.ts';
import { majors } from './ai-sdk.ts';
import { SAID, tokens } from './exchange.ts';
import { linesOf, serve } from './run.ts';
import { answeredByOpenAI, counted } from './table.ts';

const prompt = [
  { role: 'system' as const, content: 'Be kind.' },
  { role: 'user' as const, content: [{ type: 'text' as const, text: 'Tea?' }] },
];

async function runOf(given: object, isStreamed = false) {
  const model = wrapModel(given) as ReturnType<ReturnType<typeof createOpenAI>['chat']>;
  const recorder = record();
  if (isStreamed) await chunksOf((await model.doStream({ prompt })).stream as never);
  else await model.doGenerate({ prompt });
  recorder.stop();
  return onlyRun(recorder.runs);
}

const fake = (result: object, stream: readonly object[] = []) => ({
  ...{ provider: 'studio.chat', modelId: 'small', doGenerate: async () => result },
  doStream: async () => ({ stream: ReadableStream.from(stream) }),
});
const usageOf = async (usage: unknown, providerMetadata?: unknown) => {
  const { extra } = await runOf(fake({ content: [], finishReason: 'stop', usage, providerMetadata }));
  return extra?.metadata?.usage_metadata;
};

// The provider leaves out what other services add to OpenAI's format.
const own = answeredByOpenAI.filter(({ exchange }) => exchange.url.startsWith('https://api.openai.com'));
test.each(own)('$title is recorded from a model of the provider', async ({ exchange, isStreamed }) => {
  await serve(exchange, isStreamed);
  const { name, url, usage, said } = exchange;
  const isChat = name === 'openai.chat.completions';
  const provider = createOpenAI({ apiKey: 'a-secret', baseURL: url.replace(/\/(chat\/completions|responses)$/, '') });
  const run = await runOf(isChat ? provider.chat('small') : provider.responses('small'), isStreamed);
  expect(run.extra?.metadata).toMatchObject({ ls_provider: 'openai', response_model: 'small-2026' });
  expect(run.extra?.metadata?.usage_metadata).toEqual(usage);
  expect(linesOf(messagesOfInputs(run.inputs))).toEqual(['system: Be kind.', 'user: Tea?']);
  // The provider does not pass on the thoughts of chat completions.
  expect(linesOf(messagesOfOutputs(run.outputs))).toEqual(isChat ? said?.slice(1) : said);
});

test.each(counted)('the usage of $title is that of the service', async (exchange) => {
  const { service_tier: serviceTier } = exchange.response as { service_tier?: string };
  const usage = { inputTokens: {}, outputTokens: {}, raw: exchange.counts };
  expect(await usageOf(usage, { openai: { serviceTier } })).toEqual(exchange.usage);
});

const cached = { inputTokens: { total: 16, cacheRead: 4, cacheWrite: 5 }, outputTokens: { total: 3, reasoning: 1 } };
const written = { cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 } };
const ofAnthropic = { input_tokens: 7, output_tokens: 3, cache_read_input_tokens: 4, ...written };
const flex = tokens(16, 3, { flex: 12, flex_cache_read: 4, cache_creation: 5 }, { flex: 2, flex_reasoning: 1 });

test.each<[string, unknown, unknown, object | undefined]>([
  [
    'cache writes by duration',
    cached,
    { anthropic: { usage: ofAnthropic } },
    tokens(16, 3, { cache_read: 4, ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 3 }),
  ],
  ['the tier `flex`', cached, { openai: { serviceTier: 'flex' } }, flex],
  [
    "the cost of Vercel's gateway",
    cached,
    { gateway: { cost: '0.0045' } },
    { ...tokens(16, 3, { cache_read: 4, cache_creation: 5 }, { reasoning: 1 }), total_cost: 0.0045 },
  ],
  [
    'the cost of OpenRouter',
    { inputTokens: 1, outputTokens: 2 },
    { openrouter: { usage: { cost: 0.5 } } },
    { ...tokens(1, 2), total_cost: 0.5 },
  ],
  ['embeddings', { tokens: 4 }, undefined, { input_tokens: 4, total_tokens: 4 }],
  ['an unknown count', { promptTokens: Number.NaN, completionTokens: 2 }, {}, { output_tokens: 2 }],
  ['no counts', { inputTokens: { total: undefined }, outputTokens: {} }, {}, undefined],
  ...[undefined, null, 7, 'x', [], { inputTokens: 'many' }].map((usage): [string, unknown, unknown, undefined] => [
    `${JSON.stringify(usage)}`,
    usage,
    usage,
    undefined,
  ]),
])('the usage of a model with %s is recorded', async (_, usage, metadata, expected) => {
  expect(await usageOf(usage, metadata)).toEqual(expected);
});

describe.each(majors)('an answer in the form of $title', ({ result, stream, message }) => {
  test.each([false, true])('is recorded, streamed: %s', async (isStreamed) => {
    const run = await runOf(fake(result, stream), isStreamed);
    const usage_metadata = tokens(3, 5);
    expect(run.outputs).toEqual({ messages: [message], usage_metadata });
    expect(linesOf(messagesOfOutputs(run.outputs)).slice(0, 3)).toEqual(SAID);
  });
});
