// https://platform.openai.com/docs/api-reference/chat and https://platform.openai.com/docs/api-reference/responses
import {
  ANSWER,
  type Answer,
  asked,
  askedMessages,
  called,
  type Exchange,
  exchangeOf,
  type Format,
  PIXEL,
  pieces,
  tokens,
} from './exchange.ts';

const find = { name: 'find', parameters: { type: 'object', properties: {} } };
const image = `data:image/png;base64,${PIXEL}`;
const parameters = {
  ...{ model: 'small', temperature: 0.5, stop: '.', user: 'ada' },
  ...{ max_completion_tokens: 9, tools: [{ type: 'function', function: find }] },
};
const known = { ls_model_type: 'chat', ls_model_name: 'small', ls_temperature: 0.5, ls_max_tokens: 9 };
const head = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'small-2026' };
export const chunk = (choices: unknown[], more: object = {}) => ({
  ...{ ...head, object: 'chat.completion.chunk', choices },
  ...more,
});
export const delta = (value: object, more: object = {}) =>
  chunk([{ index: 0, delta: value, finish_reason: null, ...more }]);
export const choice = (message: object, more: object = {}) => ({
  ...{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: 'stop' },
  ...more,
});
export const completion = (choices: readonly unknown[], more: object = {}) => ({ ...head, choices, ...more });

export const chat: Format = {
  name: 'openai.chat.completions',
  url: 'https://api.openai.com/v1/chat/completions',
  provider: 'openai',
  body: { ...parameters, messages: askedMessages({ content: null }) },
  asked: asked(),
  metadata: {
    ...{ ...known, ls_stop: ['.'], ls_invocation_params: parameters, user_id: 'ada' },
    ...{ response_id: 'chatcmpl-1', response_model: 'small-2026' },
  },
  counts: {
    ...{ prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 },
    prompt_tokens_details: { cached_tokens: 40 },
    completion_tokens_details: { reasoning_tokens: 20, accepted_prediction_tokens: 3, rejected_prediction_tokens: 4 },
  },
  usage: tokens(100, 50, { cache_read: 40 }, { reasoning: 20, accepted_prediction: 3, rejected_prediction: 4 }),
  response({ text, thought, calls, unknown }, usage) {
    const message = {
      ...{ content: text.join(''), reasoning_content: thought.join('') },
      tool_calls: calls.map((call) => called(call.id, call.name, pieces(call).join(''))),
      ...(unknown && { annotations: [{ type: 'new', value: unknown }] }),
    };
    return completion([choice(message)], { usage });
  },
  events: ({ text, thought, calls, unknown }, usage) => [
    delta({ role: 'assistant', content: '' }),
    ...thought.map((reasoning_content) => delta({ reasoning_content })),
    ...(unknown ? [delta({ annotations: [{ type: 'new', value: unknown }] })] : []),
    ...text.map((content) => delta({ content })),
    ...calls.flatMap((call, index) => [
      delta({ tool_calls: [{ index, ...called(call.id, call.name, '') }] }),
      ...pieces(call).map((json) => delta({ tool_calls: [{ index, function: { arguments: json } }] })),
    ]),
    delta({}, { finish_reason: 'stop' }),
    chunk([], { usage }),
  ],
  error: [{ error: { code: 'busy', message: 'too much' } }, 'busy: too much'],
};

const responded = {
  ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'small-2026' },
  ...{ error: null, incomplete_details: null },
};
const respondParameters = { model: 'small', temperature: 0.5, max_output_tokens: 9 };
const server = { type: 'mcp', server_label: 'shop', server_url: 'https://shop.test' };

function itemsOf({ text, thought, calls, unknown }: Answer): object[] {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' };
  const content = [
    { type: 'output_text', text: text.join(''), annotations: [] },
    ...(unknown ? [{ type: 'new_part', value: unknown }] : []),
  ];
  return [
    { id: 'rs_1', type: 'reasoning', summary: [{ type: 'summary_text', text: thought.join('') }] },
    { ...message, content },
    ...calls.map((call, at) => ({
      ...{ id: `fc_${at}`, type: 'function_call', call_id: call.id, name: call.name },
      ...{ arguments: pieces(call).join(''), status: 'completed' },
    })),
  ];
}

/** The events of one text: the deltas, and the whole. */
const textEvents = (type: string, place: object, texts: readonly string[], field: string): object[] => [
  ...texts.map((text) => ({ type: `response.${type}.delta`, ...place, delta: text })),
  { type: `response.${type}.done`, ...place, [field]: texts.join('') },
];

function partEvents(part: string, type: string, place: object, empty: object, texts: readonly string[]): object[] {
  return [
    { type: `response.${part}.added`, ...place, part: { ...empty, text: '' } },
    ...textEvents(type, place, texts, 'text'),
    { type: `response.${part}.done`, ...place, part: { ...empty, text: texts.join('') } },
  ];
}

function responseEvents(answer: Answer): object[] {
  const { text, thought, calls, unknown } = answer;
  const items = itemsOf(answer);
  const [reasoning, message, ...functions] = items;
  const place = (output_index: number, item: object | undefined) => ({
    output_index,
    item_id: (item as { id: string }).id,
  });
  const [summary, content] = [{ type: 'summary_text' }, { type: 'output_text', annotations: [] }];
  const inside = [
    partEvents(
      'reasoning_summary_part',
      'reasoning_summary_text',
      { ...place(0, reasoning), summary_index: 0 },
      summary,
      thought,
    ),
    partEvents('content_part', 'output_text', { ...place(1, message), content_index: 0 }, content, text),
    ...calls.map((call, at) =>
      textEvents('function_call_arguments', place(at + 2, functions[at]), pieces(call), 'arguments'),
    ),
  ];
  if (unknown) {
    const part = { ...place(1, message), content_index: 1, part: { type: 'new_part', value: unknown } };
    inside[1]?.push({ type: 'response.content_part.added', ...part }, { type: 'response.content_part.done', ...part });
  }
  const empty = (item: object) => ({
    ...item,
    ...('content' in item && { content: [] }),
    ...('summary' in item && { summary: [] }),
  });
  return items.flatMap((item, output_index) => [
    {
      type: 'response.output_item.added',
      output_index,
      item: { ...empty(item), ...('arguments' in item && { arguments: '' }) },
    },
    ...(inside[output_index] ?? []),
    { type: 'response.output_item.done', output_index, item },
  ]);
}

export const responses: Format = {
  name: 'openai.responses',
  url: 'https://api.openai.com/v1/responses',
  provider: 'openai',
  body: {
    ...respondParameters,
    instructions: 'Be kind.',
    tools: [{ ...server, authorization: 'a-secret', headers: { a: 'a-secret' } }],
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'See this.' },
          { type: 'input_image', image_url: image, detail: 'auto' },
        ],
      },
      { type: 'function_call', call_id: 'call_1', name: 'find', arguments: '{"q":1}' },
      { type: 'function_call_output', call_id: 'call_1', output: '{"found":2}' },
    ],
  },
  asked: asked(),
  metadata: {
    ...{ ...known, ls_invocation_params: { ...respondParameters, tools: [server] } },
    ...{ response_id: 'resp_1', response_model: 'small-2026' },
  },
  counts: {
    ...{ input_tokens: 9, output_tokens: 7, total_tokens: 16 },
    ...{ input_tokens_details: { cached_tokens: 2 }, output_tokens_details: { reasoning_tokens: 3 } },
  },
  usage: tokens(9, 7, { cache_read: 2 }, { reasoning: 3 }),
  response: (answer, usage) => ({ ...responded, output: itemsOf(answer), usage }),
  events: (answer, usage) => [
    { type: 'response.created', response: { ...responded, status: 'in_progress', output: [], usage: null } },
    ...responseEvents(answer),
    { type: 'response.completed', response: { ...responded, output: itemsOf(answer), usage } },
  ],
  error: [{ type: 'error', code: 'busy', message: 'too much', param: null }, 'busy: too much'],
};

const flex = {
  ...tokens(100, 50, { flex: 60, flex_cache_read: 40 }),
  output_token_details: { flex: 30, flex_reasoning: 20, accepted_prediction: 3, rejected_prediction: 4 },
};
/** The image has 70 bytes. */
const audio = { id: 'audio_1', data: PIXEL, transcript: 'Tea', expires_at: 1 };
const logprobs = { content: [{ token: 'Tea', logprob: -0.5, bytes: null, top_logprobs: [] }], refusal: null };
const custom = { id: 'call_3', type: 'custom', custom: { name: 'shell', input: 'ls' } };
const refused = choice({ refusal: 'I cannot.' }, { index: 1 });

const spoken = {
  ...{ prompt_tokens: 9, completion_tokens: 7, total_tokens: 16 },
  ...{ prompt_tokens_details: { audio_tokens: 2 }, completion_tokens_details: { audio_tokens: 4 } },
};
/** A completion of several choices, whose deltas have whole texts. */
const choices = (title: string, list: readonly { message: object }[], said: string[], more: Partial<Exchange> = {}) =>
  exchangeOf(chat, {
    ...{ title: `OpenAI chat, ${title}`, said, counts: spoken, usage: tokens(9, 7, { audio: 2 }, { audio: 4 }) },
    response: completion(list, { usage: spoken }),
    events: [
      ...list.map(({ message, ...others }) => chunk([{ ...others, delta: message }])),
      chunk([], { usage: spoken }),
    ],
    ...more,
  });

const failed = { ...responded, status: 'failed', error: { code: 'server_error', message: 'the model gave up' } };
const responsesOf = (title: string, more: Partial<Exchange>) =>
  exchangeOf(responses, { title: `OpenAI responses, ${title}`, ...more });
const pictured = { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: PIXEL };
const search = { id: 'ws_1', type: 'web_search_call', status: 'completed' };
const withItems = { ...responded, output: [pictured, search], usage: responses.counts };
const answered = responses.response(ANSWER, responses.counts);

export const openai: readonly Exchange[] = [
  exchangeOf(chat, { title: 'OpenAI chat' }),
  exchangeOf(responses, { title: 'OpenAI responses' }),
  exchangeOf(responses, {
    title: 'Azure responses',
    url: 'https://shop.openai.azure.com/openai/v1/responses',
    provider: 'azure',
  }),
  choices(
    'several choices, with a refusal',
    [choice({ content: 'Tea.' }), refused],
    ['assistant: Tea.', 'assistant: refusal I cannot.'],
  ),
  choices(
    'a custom tool, log probabilities and audio',
    [choice({ tool_calls: [custom], audio }, { logprobs })],
    ['assistant: calls shell("ls")#call_3'],
    {
      outputs: completion(
        [choice({ tool_calls: [custom], audio: { ...audio, data: '[Audio: 70 bytes]' } }, { logprobs })],
        { usage: spoken },
      ),
    },
  ),
  exchangeOf(chat, {
    ...{ title: 'OpenAI chat, tier `flex`', usage: flex as Exchange['usage'] },
    response: completion([choice({ content: 'Tea.' })], { usage: chat.counts, service_tier: 'flex' }),
    events: [
      chunk([{ index: 0, delta: choice({ content: 'Tea.' }).message, finish_reason: 'stop' }], {
        service_tier: 'flex',
      }),
      chunk([], { usage: chat.counts }),
    ],
    said: ['assistant: Tea.'],
  }),
  {
    ...exchangeOf(chat, { title: 'a gateway that reports an error instead of choices' }),
    ...{ response: { error: { code: 502, message: 'Provider returned error' } }, events: undefined },
    ...{ error: '502: Provider returned error', counts: undefined, usage: undefined },
    ...{ metadata: {}, said: undefined },
  },
  responsesOf('with a generated image and a search', {
    ...{ response: withItems, isSilent: true },
    events: [
      ...[pictured, search].map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
      { type: 'response.completed', response: withItems },
    ],
    outputs: { ...withItems, output: [{ ...pictured, result: '[Image: 70 bytes]' }, search] },
    said: [
      'assistant: other {"id":"ig_1","type":"image_generation_call","status":"completed","result":"[Image: 70 bytes]"}',
      'assistant: other {"id":"ws_1","type":"web_search_call","status":"completed"}',
    ],
  }),
  responsesOf('that failed', {
    ...{ response: { ...failed, output: [], usage: responses.counts }, isSilent: true, said: [] },
    events: [{ type: 'response.failed', response: { ...failed, output: [], usage: responses.counts } }],
    error: 'server_error: the model gave up',
  }),
  // https://github.com/open-webui/open-webui/pull/27800
  responsesOf("of ChatGPT's backend, whose last event has no output", {
    events: [
      ...responses.events(ANSWER, responses.counts).slice(0, -1),
      { type: 'response.completed', response: { ...responded, output: [], usage: responses.counts } },
    ],
  }),
  responsesOf('with a stored prompt, that repeats the request', {
    ...{ body: { model: 'small', input: 'Tea?', prompt: { id: 'pmpt_1' } }, asked: ['user: Tea?'], metadata: {} },
    inputs: { messages: [{ role: 'user', content: 'Tea?' }], prompt: { id: 'pmpt_1' } },
    response: { ...answered, instructions: 'Be kind.', tools: [], prompt: { id: 'pmpt_1' } },
    outputs: answered,
  }),
];
