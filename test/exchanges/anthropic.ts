// https://docs.claude.com/en/api/messages and https://docs.claude.com/en/docs/build-with-claude/streaming
import { type Answer, asked, type Exchange, exchangeOf, type Format, PIXEL, pieces, tokens } from './exchange.ts';

const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'small-2026' };
const server = { type: 'url', name: 'files', url: 'http://localhost' };
const parameters = {
  ...{ model: 'small', max_tokens: 9, temperature: 0.5, stop_sequences: ['END'], metadata: { user_id: 'ada' } },
  tools: [{ name: 'find', input_schema: { type: 'object' } }],
};
const delta = (index: number, value: object) => ({ type: 'content_block_delta', index, delta: value });
const block = (index: number, content_block: object, deltas: readonly object[] = []) => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((value) => delta(index, value)),
  { type: 'content_block_stop', index },
];
const message = (content: readonly object[], usage: object, more: object = {}) => ({
  ...{ ...head, content, stop_reason: 'end_turn', usage },
  ...more,
});
/** The events of a message with these blocks. The last event has all counts. */
const streamed = (blocks: readonly object[], usage: object, more: object = {}) => [
  {
    type: 'message_start',
    message: { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
  },
  ...blocks,
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage, ...more },
  { type: 'message_stop' },
];
const used = (id: string, input: object, name = 'find') => ({ type: 'tool_use', id, name, input });

export const messages: Format = {
  name: 'anthropic.messages',
  url: 'https://api.anthropic.com/v1/messages',
  provider: 'anthropic',
  body: {
    ...parameters,
    mcp_servers: [{ ...server, authorization_token: 'a-secret' }],
    system: 'Be kind.',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See this.' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
        ],
      },
      { role: 'assistant', content: [used('call_1', { q: 1 })] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: '{"found":2}' }] },
    ],
  },
  asked: asked('user'),
  metadata: {
    ...{ ls_model_type: 'chat', ls_model_name: 'small', ls_temperature: 0.5, ls_max_tokens: 9, ls_stop: ['END'] },
    ...{ ls_invocation_params: { ...parameters, mcp_servers: [server] }, user_id: 'ada' },
    ...{ response_id: 'msg_1', response_model: 'small-2026' },
  },
  // https://docs.claude.com/en/docs/build-with-claude/prompt-caching#1-hour-cache-duration
  counts: {
    ...{ input_tokens: 7, output_tokens: 9, cache_read_input_tokens: 4, cache_creation_input_tokens: 5 },
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 },
    output_tokens_details: { thinking_tokens: 5 },
  },
  usage: tokens(
    16,
    9,
    { cache_read: 4, ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 3 },
    { reasoning: 5 },
  ),
  response: ({ thought, text, calls, unknown }, usage) =>
    message(
      [
        { type: 'thinking', thinking: thought.join(''), signature: 's' },
        { type: 'text', text: text.join('') },
        ...calls.map((call) => used(call.id, JSON.parse(pieces(call).join('')), call.name)),
        ...(unknown ? [{ type: 'new_block', value: unknown }] : []),
      ],
      usage,
    ),
  events: ({ thought, text, calls, unknown }: Answer, usage) =>
    streamed(
      [
        ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
          ...thought.map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: 's' },
        ]),
        ...block(
          1,
          { type: 'text', text: '' },
          text.map((one) => ({ type: 'text_delta', text: one })),
        ),
        ...calls.flatMap((call, at) => {
          const json = pieces(call).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
          return block(at + 2, used(call.id, {}, call.name), json);
        }),
        ...(unknown ? block(calls.length + 2, { type: 'new_block', value: unknown }) : []),
      ],
      usage,
    ),
  error: [{ type: 'error', error: { type: 'busy', message: 'too much' } }, 'busy: too much'],
};

const usageOf = (title: string, counts: object, usage: Exchange['usage']): Exchange => ({
  ...exchangeOf(messages, { title: `Anthropic, ${title}`, counts, usage }),
});
const few = { input_tokens: 7, output_tokens: 1, cache_read_input_tokens: 4 };
/** An exchange of which only the blocks matter. The counts are the same at once and streamed. */
const blocksOf = (
  title: string,
  content: readonly object[],
  events: readonly object[],
  more: Partial<Exchange>,
): Exchange => {
  const counts = { input_tokens: 2, output_tokens: 3 };
  const given = { response: message(content, counts), events: streamed(events, counts) };
  return exchangeOf(messages, {
    title: `Anthropic, ${title}`,
    counts,
    usage: tokens(2, 3),
    said: undefined,
    ...given,
    ...more,
  });
};
const citation = { type: 'char_location', cited_text: 'Tea', document_index: 0, document_title: 'Tea' };
const found = [{ type: 'web_search_result', url: 'http://localhost/tea', title: 'Tea' }];
const search = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'tea' } };
const result = { type: 'web_search_tool_result', tool_use_id: 'srv_1', content: found };
const compaction = { type: 'compaction', content: 'Earlier: tea.' };
const fallback = { type: 'fallback', to: { model: 'other' } };

export const anthropic: readonly Exchange[] = [
  exchangeOf(messages, { title: 'Anthropic' }),
  exchangeOf(messages, { title: 'LiteLLM with the format of Anthropic', url: 'http://litellm.shop.test/v1/messages' }),
  usageOf(
    'cache writes of unknown duration',
    { ...few, cache_creation_input_tokens: 5 },
    tokens(16, 1, { cache_read: 4, cache_creation: 5 }),
  ),
  usageOf(
    'cache writes of one known duration',
    { ...few, cache_creation_input_tokens: 9, cache_creation: { ephemeral_1h_input_tokens: 3 } },
    tokens(20, 1, { cache_read: 4, ephemeral_1hr_input_tokens: 3, cache_creation: 6 }),
  ),
  // The tokens of a compaction are not in the top-level fields, see `BetaUsage.iterations` of the SDK.
  usageOf(
    'a compaction, and an iteration of another model',
    {
      ...{ input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 2 },
      iterations: [
        { type: 'compaction', input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 7 },
        { type: 'message', input_tokens: 5, output_tokens: 3, cache_read_input_tokens: 2 },
        { type: 'advisor_message', model: 'another', input_tokens: 50, output_tokens: 50 },
      ],
    },
    tokens(114, 23, { cache_read: 9 }),
  ),
  blocksOf('no text', [{ type: 'text', text: '' }], block(0, { type: 'text', text: '' }), { isSilent: true }),
  blocksOf(
    'a tool without input',
    [used('t', {}, 'now')],
    block(0, used('t', {}, 'now'), [{ type: 'input_json_delta', partial_json: '' }]),
    { said: ['assistant: calls now({})#t'], isSilent: true },
  ),
  blocksOf(
    'a tool of the service, and a citation',
    [search, result, { type: 'text', text: 'Tea.', citations: [citation] }],
    [
      ...block(0, { ...search, input: {} }, [{ type: 'input_json_delta', partial_json: '{"query":"tea"}' }]),
      ...block(1, result),
      ...block(2, { type: 'text', text: '', citations: [] }, [
        { type: 'text_delta', text: 'Tea.' },
        { type: 'citations_delta', citation },
      ]),
    ],
    {
      said: [
        'assistant: calls web_search({"query":"tea"})#srv_1',
        'assistant: returned [{"type":"web_search_result","url":"http://localhost/tea","title":"Tea"}]#srv_1',
        'assistant: Tea.',
      ],
    },
  ),
  blocksOf(
    'hidden thoughts',
    [{ type: 'redacted_thinking', data: 'd' }],
    block(0, { type: 'redacted_thinking', data: 'd' }),
    { said: ['assistant: reasoning (hidden by the provider)'], isSilent: true },
  ),
  exchangeOf(messages, {
    title: 'Anthropic, totals at the end with nulls, a compaction, and a fallback to another model',
    response: undefined,
    events: [
      { type: 'message_start', message: { ...head, content: [], stop_reason: null, usage: { input_tokens: 2 } } },
      ...block(0, { type: 'compaction', content: '' }, [{ type: 'compaction_delta', content: 'Earlier: tea.' }]),
      ...block(1, fallback),
      ...block(2, { type: 'text', text: '' }, [{ type: 'text_delta', text: 'Tea.' }]),
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 15, input_tokens: null, cache_read_input_tokens: 4 },
        context_management: { applied_edits: [] },
      },
      { type: 'message_stop' },
    ],
    outputs: {
      ...message([compaction, fallback, { type: 'text', text: 'Tea.' }], {
        input_tokens: 2,
        output_tokens: 15,
        cache_read_input_tokens: 4,
      }),
      ...{ model: 'other', stop_sequence: null, context_management: { applied_edits: [] } },
    },
    metadata: { response_model: 'other' },
    usage: tokens(6, 15, { cache_read: 4 }),
    said: [
      'assistant: other {"type":"compaction","content":"Earlier: tea."}',
      'assistant: other {"type":"fallback","to":{"model":"other"}}',
      'assistant: Tea.',
    ],
  }),
  // https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude
  ...['rawPredict', 'streamRawPredict'].map((method) => {
    const { model: _, ...body } = messages.body as { model: string };
    const url = `https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/small:${method}`;
    const given = { url, body, provider: 'google_vertexai', metadata: { ls_model_name: 'small' } };
    return exchangeOf(messages, { title: `Claude on Vertex AI by ${method}`, ...given });
  }),
];
