// What calls cost with the table of prices. The expected costs are calculated here from the prices that the providers
// list, in USD per million tokens. The table of the package must contain the same prices.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BUILT_IN_TABLE } from '#src/receiver/domain/cost/price-table.ts';
import { payloadFacts, summaryOf } from '#src/receiver/domain/summary.ts';
import { addCost, PriceList, type PriceOptions, type RunFields } from '#src/receiver.ts';
import { root } from '../support/folders.ts';

const NOON = '2026-11-20T12:00:00.000000Z';

interface Call {
  provider?: string;
  model?: string;
  usage?: object;
  outputs?: object;
  metadata?: object;
  at?: string;
}

/** Returns the usage of a call, and where its cost comes from, as a store calculates it from the fields of a run. */
function stored({ provider, model, usage, outputs, metadata, at = NOON }: Call, options?: PriceOptions) {
  const names = { ...(provider && { ls_provider: provider }), ...(model && { ls_model_name: model }) };
  const fields: RunFields = {
    name: 'call',
    run_type: 'llm',
    start_time: at,
    outputs: { ...outputs, ...(usage && { usage_metadata: usage }) },
    extra: { metadata: { ...names, ...metadata } },
  };
  const run = summaryOf('id', 'trace', fields, payloadFacts(fields));
  if (run === undefined) throw new Error('the run is not visible');
  const source = addCost(run, new PriceList(options));
  return { usage: run.usage, source };
}

function priced(call: Call, options?: PriceOptions) {
  const { usage, source } = stored(call, options);
  return { cost: usage?.total_cost, table: source.price_table, reason: source.no_cost };
}

/** Usage whose total is the sum. `input` and `output` are the details. */
const counts = (input_tokens: number, output_tokens: number, input?: object, output?: object) => ({
  input_tokens,
  output_tokens,
  total_tokens: input_tokens + output_tokens,
  ...(input && { input_token_details: input }),
  ...(output && { output_token_details: output }),
});

const MILLION = 1_000_000;

describe('a call costs what its provider lists', () => {
  const callOf =
    (provider: string) =>
    (model: string, ...given: Parameters<typeof counts>): Call => ({ provider, model, usage: counts(...given) });
  const [claude, openai, google] = [callOf('anthropic'), callOf('openai'), callOf('google_genai')];
  const [mistral, xai, deepseek] = [callOf('mistralai'), callOf('xai'), callOf('deepseek')];
  const at = (time: string, call: Call): Call => ({ ...call, at: `${time}.000000Z` });
  const hour = { ephemeral_1hr_input_tokens: 1_000 };
  const minutes = { ephemeral_5m_input_tokens: 8_000 };
  const both = { cache_read: 4_000, ephemeral_5m_input_tokens: 3_000, ...hour };
  const searches = { usage: { service_tier: 'standard', server_tool_use: { web_search_requests: 3 } } };
  const [opus, sonnet, gemini] = ['claude-opus-5', 'claude-sonnet-4-5', 'gemini-2.5-flash'] as const;
  const [realtime, embed] = ['gpt-realtime', 'text-embedding-3-small'] as const;
  const [longOpus, chat] = [claude('claude-opus-4-6', 250_000, 100), 'deepseek-chat'] as const;
  const [cached, half] = [{ cache_read: 500, audio: 600, audio_cache_read: 400 }, { cache_read: 100_000 }];
  const toMini = { model: 'gpt-5-mini', usage: counts(1_000, 100) };
  const reasoned = { ...counts(100, 20), total_tokens: 420, output_token_details: { reasoning: 300 } };

  test.each<[what: string, call: Call, dollarsPerMillion: number]>([
    // Claude Opus 5: 5, output 25, cache read 0.5, cache write 6.25, for 1 hour 10.
    ['Claude', claude(opus, 1_000, 100), 1_000 * 5 + 100 * 25],
    ['Claude, cache read', claude(opus, 10_000, 100, { cache_read: 9_000 }), 9_000 * 0.5 + 1_000 * 5 + 2_500],
    ['Claude, cache write', claude(opus, 9_000, 0, { cache_creation: 8_000 }), 8_000 * 6.25 + 1_000 * 5],
    ['Claude, cache write for 5 minutes', claude(opus, 9_000, 0, minutes), 8_000 * 6.25 + 1_000 * 5],
    ['Claude, cache write for 1 hour', claude(opus, 1_500, 10, hour), 1_000 * 10 + 500 * 5 + 10 * 25],
    [
      'Claude, cache writes of both lifetimes and a read',
      claude(opus, 10_000, 10, both),
      4_000 * 0.5 + 3_000 * 6.25 + 1_000 * 10 + 2_000 * 5 + 10 * 25,
    ],
    ['a dated name', claude('claude-haiku-4-5-20251001', 1_000, 100), 1_000 * 1 + 100 * 5],
    ['another order of the name', claude('claude-4.5-haiku', 1_000, 100), 1_000 * 1 + 100 * 5],
    ['an old model', claude('claude-3-haiku-20240307', 1_000, 100, { cache_read: 500 }), 500 * 0.25 + 500 * 0.03 + 125],
    ['a short prompt', claude(sonnet, 200_000, 100), 200_000 * 3 + 100 * 15],
    ['a long prompt', claude(sonnet, 200_001, 100), 200_001 * 6 + 100 * 22.5],
    [
      'a long prompt from a cache',
      claude(sonnet, 300_000, 100, { cache_read: 250_000, ephemeral_1h_input_tokens: 10_000 }),
      250_000 * 0.6 + 10_000 * 12 + 40_000 * 6 + 100 * 22.5,
    ],
    ['a long prompt before its surcharge ended', at('2026-03-12T23:59:59', longOpus), 250_000 * 10 + 100 * 37.5],
    ['a long prompt after its surcharge ended', at('2026-03-13T00:00:00', longOpus), 250_000 * 5 + 100 * 25],
    [
      'Claude with 3 web searches, at 10 per thousand',
      { ...claude(opus, 1_000, 100), outputs: searches },
      1_000 * 5 + 100 * 25 + 3 * 10_000,
    ],
    ['Claude on Vertex AI', { provider: 'google_vertexai', model: 'claude-haiku-4-5', usage: counts(10, 1) }, 10 + 5],
    // GPT-5: 1.25, output 10, cache read 0.125.
    ['GPT', openai('gpt-5', 1_000, 100), 1_000 * 1.25 + 100 * 10],
    ['GPT, cache read', openai('gpt-5', 1_000, 100, { cache_read: 800 }), 200 * 1.25 + 800 * 0.125 + 100 * 10],
    ['GPT, reasoning', openai('gpt-5', 1_000, 900, {}, { reasoning: 800 }), 1_000 * 1.25 + 900 * 10],
    ['GPT, a dated name', openai('gpt-5-mini-2025-08-07', 1_000, 100), 1_000 * 0.25 + 100 * 2],
    ['GPT, fine-tuned', openai('ft:gpt-4o-mini-2024-07-18:me::1', 1_000, 100), 1_000 * 0.3 + 100 * 1.2],
    ['GPT, an alias', openai('gpt-5-chat-latest', 1_000, 100), 1_000 * 1.25 + 100 * 10],
    ['GPT, a short prompt', openai('gpt-5.4', 271_999, 100), 271_999 * 2.5 + 100 * 15],
    ['GPT, a long prompt', openai('gpt-5.4', 272_000, 100, { cache_read: 72_000 }), 200_000 * 5 + 36_000 + 2_250],
    ['o3 before its price fell', at('2025-06-09T12:00:00', openai('o3', 100, 10)), 100 * 10 + 10 * 40],
    ['o3 after its price fell', at('2025-06-10T00:00:00', openai('o3', 100, 10)), 100 * 2 + 10 * 8],
    ['an embedding', openai(embed, 1_000, 0), 1_000 * 0.02],
    ['one without an output count', { provider: 'openai', model: embed, usage: { input_tokens: 1_000 } }, 1_000 * 0.02],
    ['one that costs the same everywhere', { model: embed, usage: { input_tokens: 1_000 } }, 1_000 * 0.02],
    [
      'audio in both directions',
      openai(realtime, 1_000, 300, { audio: 600 }, { audio: 200 }),
      600 * 32 + 400 * 4 + 200 * 64 + 100 * 16,
    ],
    ['cached audio', openai(realtime, 1_000, 0, cached), 400 * 0.4 + 100 * 0.4 + 200 * 32 + 300 * 4],
    [
      'cached text beside audio',
      openai(realtime, 1_000, 0, { cache_read: 100, audio: 600, audio_cache_read: 0 }),
      100 * 0.4 + 600 * 32 + 300 * 4,
    ],
    ['a transcription', openai('gpt-4o-transcribe', 1_000, 50, { audio: 900 }), 900 * 6 + 100 * 2.5 + 50 * 10],
    [
      'an image made from an image',
      openai('gpt-image-1', 500, 1_000, { image: 400 }, { image: 1_000 }),
      400 * 10 + 100 * 5 + 1_000 * 40,
    ],
    ['GPT on Azure', { provider: 'azure', ...toMini }, 1_000 * 0.25 + 100 * 2],
    ['GPT on Azure, by the name in OpenTelemetry', { provider: 'az.ai.openai', ...toMini }, 1_000 * 0.25 + 100 * 2],
    ['a model of an unknown provider', { model: 'gpt-4o-mini', usage: counts(1_000, 100) }, 1_000 * 0.15 + 100 * 0.6],
    // Gemini 2.5 Flash: 0.3, audio 1, cache read 0.03, of audio 0.1, output 2.5.
    ['Gemini', google(gemini, 1_000, 100), 1_000 * 0.3 + 100 * 2.5],
    ['Gemini, thoughts', google(gemini, 1_000, 500, {}, { reasoning: 400 }), 1_000 * 0.3 + 500 * 2.5],
    ['Gemini, audio', google(gemini, 1_000, 10, { audio: 900, text: 100 }), 900 * 1 + 100 * 0.3 + 10 * 2.5],
    ['Gemini, an image', google(gemini, 1_000, 10, { image: 900, text: 100 }), 1_000 * 0.3 + 10 * 2.5],
    ['Gemini, cache read', google(gemini, 1_000, 10, { cache_read: 900, text: 1_000 }), 900 * 0.03 + 100 * 0.3 + 25],
    ['Gemini, a name with a prefix', google(`models/${gemini}`, 1_000, 100), 1_000 * 0.3 + 100 * 2.5],
    ['Gemini, a short prompt', google('gemini-2.5-pro', 200_000, 10), 200_000 * 1.25 + 10 * 10],
    ['Gemini, a long prompt', google('gemini-2.5-pro', 200_001, 10, half), 100_000 * 0.25 + 100_001 * 2.5 + 10 * 15],
    ['Mistral', mistral('mistral-large-2512', 1_000, 100), 1_000 * 0.5 + 100 * 1.5],
    ['Mistral, cache read', mistral('mistral-small-2603', 1_000, 0, { cache_read: 600 }), 400 * 0.15 + 600 * 0.015],
    ['Mistral, an alias', mistral('mistral-large-latest', 1_000, 100), 1_000 * 2 + 100 * 6],
    ['Grok, a prompt below the long ones', xai('grok-4.6', 199_999, 10), 199_999 * 2 + 10 * 6],
    ['Grok, a long prompt', xai('grok-4.6', 200_000, 10, { cache_read: 150_000 }), 50_000 * 4 + 150_000 * 1 + 10 * 12],
    ['Grok, with reasoning beside its output', { ...xai('grok-4.6', 0, 0), usage: reasoned }, 100 * 2 + 320 * 6],
    ['DeepSeek in the night', at('2025-03-01T20:00:00', deepseek(chat, 1_000, 100)), 1_000 * 0.135 + 100 * 0.55],
    [
      'DeepSeek in the day, cache read',
      at('2025-03-01T12:00:00', deepseek(chat, 1_000, 100, { cache_read: 400 })),
      600 * 0.27 + 400 * 0.07 + 100 * 1.1,
    ],
    ['a search service, at 12 per thousand requests', callOf('perplexity')('sonar', 100, 200), 100 + 200 + 12_000],
  ])('%s', (_, call, expected) => {
    const { cost, table, reason } = priced(call);
    expect(reason).toBeUndefined();
    expect(cost).toBeCloseTo(expected / MILLION, 12);
    expect(table).toBe('genai-prices 0.1.8');
  });
});

test('a cost that the run reports wins, and has no table', () => {
  const usage = { ...counts(1_000, 100), total_cost: 0.5 };
  expect(priced({ provider: 'openai', model: 'gpt-5', usage })).toEqual({ cost: 0.5 });
  expect(priced({ model: 'unknown', usage })).toEqual({ cost: 0.5 });
  expect(priced({ provider: 'openai', model: 'gpt-5', usage: { ...usage, total_cost: 0 } })).toEqual({ cost: 0 });
  // The cost of one side is not the cost of the run.
  const part = { ...counts(1_000, 100), input_cost: 0.25 };
  expect(priced({ provider: 'openai', model: 'gpt-5', usage: part }).cost).toBeCloseTo(0.00225, 12);
  const parts = { ...counts(1_000, 100), input_cost: 0.25, output_cost: 0.5 };
  expect(priced({ provider: 'openai', model: 'gpt-5', usage: parts })).toEqual({ cost: 0.75 });
});

describe('a call without a certain price has no cost', () => {
  const gpt = { provider: 'openai', model: 'gpt-5' };
  const opus = { provider: 'anthropic', model: 'claude-opus-5' };
  const usage = counts(1_000, 100);

  test.each<[call: Call, reason: string]>([
    [{ usage }, 'no model'],
    [{ ...gpt, usage: { ...usage, input_tokens: 10.5 } }, 'not a whole number'],
    [{ ...gpt, usage: { ...usage, input_tokens: '10' } as never }, 'not a whole number'],
    [{ ...gpt, usage: { ...usage, output_tokens: 2e9 } }, 'not a whole number'],
    [{ ...gpt, usage: counts(1_000, 100, { cache_read: -5 }) }, 'not a whole number'],
    [{ ...gpt, usage: { ...usage, total_tokens: 5_000 } }, 'the total token count differs'],
    [{ ...gpt, usage: { input_tokens: 1_000 } }, 'no output token count'],
    [{ model: 'my-model', usage }, 'no price for model "my-model"'],
    [{ provider: 'ollama', model: 'gpt-5', usage }, 'no price for model "gpt-5" of ollama'],
    [{ provider: 'openai', model: 'ft:gpt-4.1-2025-04-14:me::1', usage }, 'no price for model "ft:gpt-4.1'],
    [{ model: 'x'.repeat(301), usage }, 'no price for model "xxx'],
    [{ provider: 'openrouter', model: 'openai/gpt-oss-20b:free', usage }, 'no price of tokens'],
    [{ provider: 'openai', model: 'whisper-1', usage }, 'no price of tokens for model "whisper-1"'],
    [{ provider: 'perplexity', model: 'sonar-deep-research', usage }, 'output_citation_mtok needs counts'],
    [
      { ...gpt, usage: counts(1_000, 100, { priority: 200, priority_cache_read: 800 }) },
      'no price of tier "priority" for model "gpt-5" of openai',
    ],
    [{ ...gpt, usage: counts(1_000, 100, {}, { flex: 50, flex_reasoning: 50 }) }, 'no price of tier "flex"'],
    [{ ...gpt, usage, outputs: { service_tier: 'scale' } }, 'no price of tier "scale"'],
    [{ ...gpt, usage, outputs: { service_tier: 'flex' } }, 'no price of tier "flex"'],
    [{ ...gpt, usage, metadata: { service_tier: 'batch' } }, 'no price of tier "batch"'],
    [{ ...opus, usage, outputs: { usage: { service_tier: 'batch' } } }, 'no price of tier "batch"'],
    [{ ...opus, usage, outputs: { usage: { speed: 'fast' } } }, 'no price of tier "fast"'],
    [{ ...opus, usage, outputs: { usage: { inference_geo: 'us' } } }, 'no price of tier "us"'],
    [
      { provider: 'openai', model: 'gpt-4o-audio-preview', usage: counts(1_000, 100, { audio: 500 }) },
      'no price of input audio tokens',
    ],
    [{ ...gpt, usage: counts(1_000, 100, {}, { audio: 50 }) }, 'no price of output audio tokens'],
    [{ ...gpt, usage: counts(1_000, 100, { cache_creation: 50 }) }, 'no price of cache write tokens'],
    [
      { provider: 'mistral', model: 'mistral-large-latest', usage: counts(1_000, 1, { cache_read: 5 }) },
      'no price of cache read tokens',
    ],
    [
      { provider: 'google', model: 'gemini-2.5-flash', usage: counts(1_000, 1, { cache_read: 5, audio: 5 }) },
      'unknown how many of the cached tokens are audio',
    ],
    // Azure and OpenAI list models with this name at different prices.
    [{ model: 'ada', usage }, 'no price for model "ada"'],
    [{ ...gpt, usage: { total_tokens: 1_000 } }, 'no input and output token counts'],
    [{ ...gpt, usage: { input_tokens: 1_000, total_tokens: 1_100 } }, 'no output token count'],
    [{ ...gpt, usage: { output_tokens: 100, total_tokens: 1_100 } }, 'no input token count'],
    [{ ...gpt, usage: counts(1_000, 100, { cache_read: 1_001 }) }, 'the token counts contradict each other'],
    [{ ...gpt, usage: counts(1_000, 100, { image: 1_001 }) }, 'the token counts contradict each other'],
    [{ ...gpt, usage: counts(1_000, 100, {}, { reasoning: 101 }) }, 'the token counts contradict each other'],
    [
      { ...opus, usage: counts(1_000, 100, { cache_read: 600, ephemeral_5m_input_tokens: 600 }) },
      'the token counts contradict each other',
    ],
  ])('%j: %s', (call, reason) => {
    const { cost, table, reason: given } = priced(call);
    expect(given).toContain(reason);
    expect([cost, table]).toEqual([undefined, undefined]);
  });

  test('and no reason if it has no usage', () => {
    expect(priced({ ...gpt, usage: {} })).toEqual({});
  });

  test.each([
    [{ outputs: { service_tier: 'default' } }],
    [{ outputs: { service_tier: null, usage: { service_tier: 'standard', speed: 'standard' } } }],
    [{ metadata: { service_tier: 'auto' } }],
  ])('but the standard tier does, as with %j', (more) => {
    expect(priced({ ...gpt, usage, ...more }).cost).toBeCloseTo((1_000 * 1.25 + 100 * 10) / MILLION, 12);
  });
});

test('the usage of Anthropic in a response as it came has the cached tokens, which its input count excludes', () => {
  const usage = {
    input_tokens: 1_000,
    output_tokens: 100,
    cache_read_input_tokens: 9_000,
    cache_creation_input_tokens: 500,
    cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 200 },
  };
  const { usage: found } = stored({ provider: 'anthropic', model: 'claude-opus-5', outputs: { usage } });
  expect(found).toMatchObject({ input_tokens: 10_500, total_tokens: 10_600 });
  const expected = 1_000 * 5 + 9_000 * 0.5 + 300 * 6.25 + 200 * 10 + 100 * 25;
  expect(found?.total_cost).toBeCloseTo(expected / MILLION, 12);
});

describe('caching saves', () => {
  const opus = (input: number, details: object, more: object = {}): Call => ({
    provider: 'anthropic',
    model: 'claude-opus-5',
    usage: { ...counts(input, 10, details), ...more },
  });
  const own = (details: object): Call => ({ model: 'gpt-x', usage: counts(1_000, 100, details) });
  const gptX = (price: object): PriceOptions => ({ prices: { 'gpt-x': { input: 2, output: 3, ...price } } });
  const mixed = { cache_read: 4_000, ephemeral_5m_input_tokens: 3_000, ephemeral_1hr_input_tokens: 1_000 };
  const sonnet = { model: 'claude-sonnet-4-5', usage: counts(300_000, 100, { cache_read: 250_000 }) };
  const audio = { audio: 500, cache_read: 200, audio_cache_read: 50 };
  const half = { input: 1, output: 2, cache_read: 0.5 };

  test.each<[what: string, call: Call, options: PriceOptions | undefined, dollarsPerMillion: number | undefined]>([
    ['what reads cost less', opus(10_000, { cache_read: 9_000 }), undefined, 9_000 * (5 - 0.5)],
    ['what writes cost more, as a loss', opus(9_000, { cache_creation: 8_000 }), undefined, 8_000 * (5 - 6.25)],
    ['both', opus(10_000, mixed), undefined, 4_000 * 4.5 - 3_000 * 1.25 - 1_000 * 5],
    ['at the price of a long prompt', sonnet, undefined, 250_000 * (6 - 0.6)],
    ['audio', own(audio), gptX({ input_audio: 10, cache_read: 1 }), 50 * (10 - 1) + 150 * (2 - 1)],
    ['at the price of a tier', own({ flex: 600, flex_cache_read: 400 }), gptX({ tiers: { flex: half } }), 400 * 0.5],
    [
      'at configured prices, with the ratios of the table',
      opus(10_000, mixed),
      { prices: { 'claude-opus-5': { input: 10, output: 30 } } },
      4_000 * 9 - 3_000 * 2.5 - 1_000 * 10,
    ],
    ['a known amount if only the price of a write is assumed', own({ cache_read: 400 }), gptX({ cache_read: 1 }), 400],
    ['an unknown amount if the price of a read is assumed', own({ cache_read: 400 }), gptX({}), undefined],
    [
      'an unknown amount if the price of a write is assumed',
      own({ cache_read: 400, cache_creation: 400 }),
      gptX({ cache_read: 1 }),
      undefined,
    ],
    ['nothing without a cache', opus(10_000, {}), undefined, undefined],
    ['an unknown amount without a price', own({ cache_read: 400 }), undefined, undefined],
    ['an unknown amount if the run reports its cost', opus(10_000, mixed, { total_cost: 1 }), undefined, undefined],
  ])('%s', (_, call, options, expected) => {
    const { usage } = stored(call, options);
    if (expected === undefined) expect(usage).not.toHaveProperty('cache_savings');
    else expect(usage?.cache_savings).toBeCloseTo(expected / MILLION, 12);
  });

  test('tokens that are counted also without a cost, unless they are more than the input', () => {
    const cached = (given: object) => stored({ usage: given }).usage?.cached_tokens;
    expect(cached(counts(1_000, 100, { cache_read: 400 }))).toBe(400);
    expect(cached({ ...counts(1_000, 100, { cache_read: 1_000 }), total_cost: 1 })).toBe(1_000);
    expect(cached(counts(1_000, 100, { cache_read: 1_001 }))).toBe(undefined);
    expect(cached(counts(1_000, 100, { cache_creation: 400 }))).toBe(undefined);
  });
});

test('the name of the table is the version of the package', () => {
  const path = join(root, 'node_modules/@pydantic/genai-prices/package.json');
  expect(BUILT_IN_TABLE).toBe(`genai-prices ${JSON.parse(readFileSync(path, 'utf8')).version}`);
});

describe('configured prices', () => {
  const usage = counts(1_000, 100);
  const of = (price: object, call: Partial<Call> = {}) =>
    priced({ model: 'gpt-x', usage, ...call }, { prices: { 'gpt-x': price as never } });

  test('apply instead of the table, also to dated versions', () => {
    const options = { prices: { 'gpt-5': { input: 7, output: 11 } } };
    const { cost, table } = priced({ provider: 'openai', model: 'gpt-5-2025-08-07', usage }, options);
    expect(cost).toBeCloseTo((1_000 * 7 + 100 * 11) / MILLION, 12);
    expect(table).toMatch(/^prices [0-9a-f]{8}$/);
    expect(priced({ provider: 'openai', model: 'gpt-5-mini', usage }, options).table).toBe(BUILT_IN_TABLE);
  });

  test('have a name that changes with the prices', () => {
    expect(of({ input: 1, output: 2 }).table).toBe(of({ input: 1, output: 2 }).table);
    expect(of({ input: 1, output: 2 }).table).not.toBe(of({ input: 1, output: 3 }).table);
  });

  const details = { cache_read: 400, ephemeral_5m_input_tokens: 200, ephemeral_1hr_input_tokens: 100 };
  test.each<[string, object, Call, number]>([
    ['input and output', { input: 2, output: 3 }, { usage }, 2_000 + 300],
    [
      'caches, without prices',
      { input: 2, output: 3 },
      { usage: counts(1_000, 100, details) },
      800 + 500 + 400 + 600 + 300,
    ],
    [
      'caches, with prices',
      { input: 2, output: 3, cache_read: 0.5, cache_write: 4, cache_write_1h: 8 },
      { usage: counts(1_000, 100, details) },
      400 * 0.5 + 200 * 4 + 100 * 8 + 300 * 2 + 300,
    ],
    [
      'audio',
      { input: 2, output: 3, input_audio: 10, output_audio: 20, cache_read: 1 },
      { usage: counts(1_000, 100, { audio: 500, cache_read: 200, audio_cache_read: 50 }, { audio: 60 }) },
      50 * 1 + 150 * 1 + 450 * 10 + 350 * 2 + 60 * 20 + 40 * 3,
    ],
    [
      'reasoning, images and video',
      { input: 2, output: 3, output_reasoning: 5, input_image: 7, input_video: 9, output_image: 11 },
      { usage: counts(1_000, 100, { image: 300, video: 200 }, { reasoning: 50, image: 20 }) },
      300 * 7 + 200 * 9 + 500 * 2 + 50 * 5 + 20 * 11 + 30 * 3,
    ],
    [
      'a tier',
      { input: 2, output: 3, tiers: { priority: { input: 4, output: 6, cache_read: 1 } } },
      { usage: counts(1_000, 100, { priority: 900, priority_cache_read: 100 }) },
      900 * 4 + 100 * 1 + 100 * 6,
    ],
    ['nothing', { input: 0, output: 0 }, { usage }, 0],
  ])('price %s', (_, price, call, expected) => {
    expect(of(price, call).cost).toBeCloseTo(expected / MILLION, 12);
  });

  test('of a model in the table have the ratios of the table for what they leave out', () => {
    const call = { provider: 'anthropic', model: 'claude-opus-5', usage: counts(1_000, 100, details) };
    const { cost } = priced(call, { prices: { 'claude-opus-5': { input: 10, output: 30 } } });
    expect(cost).toBeCloseTo((400 * 1 + 200 * 12.5 + 100 * 20 + 300 * 10 + 100 * 30) / MILLION, 12);
  });

  test('without a price of audio or of the tier give no cost', () => {
    const price = { input: 2, output: 3, tiers: { flex: { input: 1, output: 1 } } };
    expect(of(price, { usage: counts(10, 1, { audio: 5 }) }).reason).toBe(
      'no price of input audio tokens for model "gpt-x"',
    );
    for (const tier of ['priority', 'constructor']) {
      expect(of(price, { outputs: { service_tier: tier } }).reason).toBe(
        `no price of tier "${tier}" for model "gpt-x"`,
      );
    }
  });
});
