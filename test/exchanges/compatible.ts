// Services with OpenAI's format. Only what differs is in a row. A row without an address rests on the report that it names.
import { called, type Exchange, exchangeOf, tokens } from './exchange.ts';
import { chat, choice, chunk, completion, delta } from './openai.ts';

const prompt = (prompt_tokens: number, completion_tokens: number, more: object = {}) => ({
  ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  ...more,
});
const cached = (cached_tokens: number, more: object = {}) => ({ prompt_tokens_details: { cached_tokens, ...more } });
const reasoned = (reasoning_tokens: number) => ({ completion_tokens_details: { reasoning_tokens } });

type Row = [title: string, provider: string, url: string, counts: object, usage: Exchange['usage']];

const usages: readonly Row[] = [
  // https://docs.x.ai/developers/cost-tracking, and https://github.com/vercel/ai/issues/12425: output excludes reasoning
  [
    'xAI',
    'xai',
    'https://api.x.ai/v1',
    { ...prompt(32, 9), total_tokens: 135, ...cached(6), ...reasoned(94), cost_in_usd_ticks: 37_756_000 },
    { ...tokens(32, 103, { cache_read: 6 }, { reasoning: 94 }), total_cost: 0.0037756 },
  ],
  // https://openrouter.ai/docs/use-cases/usage-accounting
  [
    'OpenRouter',
    'openrouter',
    'https://openrouter.ai/api/v1',
    prompt(20, 5, { cost: 0.25, is_byok: false, cost_details: { upstream_inference_cost: 0.25 } }),
    { ...tokens(20, 5), total_cost: 0.25 },
  ],
  [
    'OpenRouter with an own key',
    'openrouter',
    'https://openrouter.ai/api/v1',
    prompt(20, 5, { cost: 0.25, is_byok: true, cost_details: { upstream_inference_cost: 5 } }),
    { ...tokens(20, 5), total_cost: 5.25 },
  ],
  [
    'Perplexity',
    'perplexity',
    'https://api.perplexity.ai',
    prompt(8, 30, { cost: { input_tokens_cost: 0.25, request_cost: 0.5, total_cost: 0.75 } }),
    { ...tokens(8, 30), total_cost: 0.75 },
  ],
  // https://github.com/BerriAI/litellm/issues/31069
  [
    'LiteLLM',
    'litellm',
    'http://localhost:4000',
    { ...prompt(2000, 5), ...cached(500, { cache_creation_tokens: 1400 }), cache_creation_input_tokens: 1400 },
    tokens(2000, 5, { cache_read: 500, cache_creation: 1400 }),
  ],
  // https://api-docs.deepseek.com/guides/kv_cache
  [
    'DeepSeek',
    'deepseek',
    'https://api.deepseek.com',
    { ...prompt(12, 9), prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 4, ...reasoned(3) },
    tokens(12, 9, { cache_read: 8 }, { reasoning: 3 }),
  ],
  // https://www.alibabacloud.com/help/model-studio/context-cache
  [
    'Qwen',
    'dashscope',
    'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    {
      ...prompt(3019, 104),
      ...cached(0, { cache_creation: { ephemeral_5m_input_tokens: 2048 }, cache_creation_input_tokens: 2048 }),
    },
    tokens(3019, 104, { cache_read: 0, ephemeral_5m_input_tokens: 2048 }),
  ],
  // https://docs.z.ai/guides/capabilities/cache
  [
    'Z.ai',
    'zai',
    'https://api.z.ai/api/paas/v4',
    { ...prompt(1200, 300), ...cached(800) },
    tokens(1200, 300, { cache_read: 800 }),
  ],
  [
    "Vercel's gateway",
    'vercel',
    'https://ai-gateway.vercel.sh/v1',
    prompt(20, 9, { cost: '0.0045' }),
    { ...tokens(20, 9), total_cost: 0.0045 },
  ],
  [
    'Groq',
    'groq',
    'https://api.groq.com/openai/v1',
    { queue_time: 0.03, ...prompt(18, 5), total_time: 0.02 },
    tokens(18, 5),
  ],
  ['vLLM', 'vllm', 'http://localhost:8000/v1', prompt(3, 4), tokens(3, 4)],
  ['LM Studio', 'openai', 'http://localhost:1234/v1', prompt(3, 4), tokens(3, 4)],
  ['Ollama with the format of OpenAI', 'ollama', 'http://localhost:11434/v1', prompt(3, 4), tokens(3, 4)],
];

const addresses: readonly [provider: string, url: string][] = [
  ['moonshot', 'https://api.moonshot.cn/v1'],
  ['zhipuai', 'https://open.bigmodel.cn/api/paas/v4'],
  ['huggingface', 'https://mine.aws.endpoints.huggingface.cloud/v1'],
];

const usageRows = usages.map(([title, provider, url, counts, usage]) =>
  exchangeOf(chat, { title, provider, url: `${url}/chat/completions`, counts, usage }),
);

/** An exchange whose stream has another form than that of OpenAI. The chunks have no usage. */
function streamOf(
  title: string,
  events: readonly object[],
  choices: readonly object[],
  said: string[],
  more: object = {},
): Exchange {
  const outputs = completion(choices);
  return exchangeOf(chat, { title, response: undefined, events, outputs, said, counts: {}, usage: undefined, ...more });
}
const weather = called('call_a', 'weather', '{"city":"Cork"}');
const time = called('call_b', 'time', '{"zone":"UTC"}');
const weatherSaid = 'assistant: calls weather({"city":"Cork"})#call_a';
const withCall = (more: object) => choice({ tool_calls: [weather], ...more });
const toolCall = (id: string, name: string, json: string) =>
  delta({ role: '', tool_calls: [{ index: 0, ...called(id, name, json) }] });
const start = delta({ role: 'assistant', content: null });
const end = delta({}, { finish_reason: 'stop' });
const verdict = (severity: string) => ({
  content_filter_results: { hate: { filtered: false, severity }, violence: { severity: 'safe' } },
});
const thinking = (text: string) => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] });
const counts = prompt(19, 21, { cached_tokens: 10 });
const usage = tokens(19, 21, { cache_read: 10 });

const streams: readonly Exchange[] = [
  streamOf(
    'a service that repeats the id and the name of a tool call',
    [start, toolCall('call_a', 'weather', '{"city":'), toolCall('call_a', 'weather', '"Cork"}'), end],
    [withCall({})],
    [weatherSaid],
  ),
  // https://github.com/langchain-ai/langchainjs/issues/9237 and https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/649
  streamOf(
    'Qwen or LM Studio, with empty ids and names in later chunks',
    [start, toolCall('call_a', 'weather', '{"city":'), toolCall('', '', '"Cork"}'), end],
    [withCall({})],
    [weatherSaid],
  ),
  // https://github.com/NousResearch/hermes-agent/issues/62937
  streamOf(
    "Gemini's endpoint, whose tool calls all have the index 0",
    [start, toolCall('call_a', 'weather', '{"city":"Cork"}'), toolCall('call_b', 'time', '{"zone":"UTC"}'), end],
    [withCall({ tool_calls: [weather, time] })],
    [weatherSaid, 'assistant: calls time({"zone":"UTC"})#call_b'],
  ),
  streamOf(
    'Azure, with a verdict on the content in each chunk',
    [start, delta({ content: 'a' }, verdict('safe')), delta({ content: 'b' }, verdict('low')), end],
    [choice({ content: 'ab' }, verdict('low'))],
    ['assistant: ab'],
    {
      url: 'https://shop.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21',
      provider: 'azure',
      body: { model: '', messages: [] },
      asked: undefined,
      metadata: { ls_model_name: 'my-gpt' },
    },
  ),
  streamOf(
    'choices in another order',
    [1, 0, 1].map((index) =>
      chunk([{ index, delta: { role: 'assistant', content: `${index}` }, finish_reason: 'stop' }]),
    ),
    [choice({ content: '0' }), choice({ content: '11' }, { index: 1 })],
    ['assistant: 0', 'assistant: 11'],
  ),
  streamOf(
    'random padding',
    [chunk([{ index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: 'stop' }], { obfuscation: 'x7Kq' })],
    [choice({ content: 'a' })],
    ['assistant: a'],
  ),
  // https://console.groq.com/docs/api-reference: the last chunk contains the tokens.
  streamOf(
    'Groq, with tokens beside the choices',
    [delta({ role: 'assistant', content: 'a' }), { ...end, x_groq: { id: 'req_1', usage: counts } }],
    [choice({ content: 'a' })],
    ['assistant: a'],
    {
      url: 'https://api.groq.com/openai/v1/chat/completions',
      provider: 'groq',
      streamed: { x_groq: { id: 'req_1', usage: counts } },
      usage,
    },
  ),
  // https://github.com/earendil-works/pi/issues/2017
  streamOf(
    'Moonshot, with tokens in the last choice',
    [delta({ role: 'assistant', content: 'a' }), delta({}, { finish_reason: 'stop', usage: counts })],
    [choice({ content: 'a' }, { usage: counts })],
    ['assistant: a'],
    { usage },
  ),
  // https://docs.mistral.ai/capabilities/reasoning, and https://github.com/comet-ml/opik/issues/8376: text and lists alternate
  streamOf(
    'Mistral, with thoughts',
    [
      start,
      delta(thinking('Think ')),
      delta(thinking('hard.')),
      delta({ content: 'Tea ' }),
      delta({ content: 'is hot.' }),
      end,
    ],
    [choice({ content: [...thinking('Think hard.').content, { type: 'text', text: 'Tea is hot.' }] })],
    ['assistant: reasoning Think hard.', 'assistant: Tea is hot.'],
    { url: 'https://api.mistral.ai/v1/agents/completions', provider: 'mistralai' },
  ),
];

export const compatible: readonly Exchange[] = [
  ...usageRows,
  ...streams,
  ...addresses.map(([provider, url]) =>
    exchangeOf(chat, { title: provider, provider, url: `${url}/chat/completions` }),
  ),
];
