// https://docs.cohere.com/reference/chat and https://docs.cohere.com/reference/embed
import { asked, askedMessages, called, type Exchange, exchangeOf, type Format, pieces, tokens } from './exchange.ts';

const content = (index: number, value: object) => ({ index, delta: { message: { content: value } } });
const toolCall = (index: number, value: object) => ({ index, delta: { message: { tool_calls: value } } });

export const cohereChat: Format = {
  name: 'cohere.chat',
  url: 'https://api.cohere.com/v2/chat',
  provider: 'cohere',
  body: { ...{ model: 'small', max_tokens: 9 }, messages: askedMessages() },
  asked: asked(),
  metadata: { ls_model_type: 'chat', ls_model_name: 'small', ls_max_tokens: 9, response_id: 'c_1' },
  counts: {
    ...{ billed_units: { input_tokens: 4, output_tokens: 2 }, tokens: { input_tokens: 5, output_tokens: 3 } },
    cached_tokens: 1,
  },
  usage: tokens(5, 3, { cache_read: 1 }),
  response: ({ thought, text, calls, unknown }, usage) => ({
    id: 'c_1',
    finish_reason: 'COMPLETE',
    message: {
      role: 'assistant',
      tool_plan: 'I warn.',
      tool_calls: calls.map((call) => called(call.id, call.name, pieces(call).join(''))),
      content: [
        { type: 'thinking', thinking: thought.join('') },
        { type: 'text', text: text.join('') },
        ...(unknown ? [{ type: 'new', value: unknown }] : []),
      ],
    },
    usage,
  }),
  events: ({ thought, text, calls, unknown }, usage) => [
    { type: 'message-start', id: 'c_1', delta: { message: { role: 'assistant', content: [], tool_calls: [] } } },
    { type: 'content-start', ...content(0, { type: 'thinking', thinking: '' }) },
    ...thought.map((thinking) => ({ type: 'content-delta', ...content(0, { thinking }) })),
    { type: 'content-start', ...content(1, { type: 'text', text: '' }) },
    ...text.map((word) => ({ type: 'content-delta', ...content(1, { text: word }) })),
    { type: 'tool-plan-delta', delta: { message: { tool_plan: 'I warn.' } } },
    ...calls.flatMap((call, at) => [
      { type: 'tool-call-start', ...toolCall(at, called(call.id, call.name, '')) },
      ...pieces(call).map((json) => ({ type: 'tool-call-delta', ...toolCall(at, { function: { arguments: json } }) })),
    ]),
    ...(unknown ? [{ type: 'content-start', ...content(2, { type: 'new', value: unknown }) }] : []),
    { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } },
  ],
  error: [{ type: 'message-end', delta: { finish_reason: 'ERROR', error: 'too much' } }, 'too much'],
};

const embed = { texts: ['tea', 'soup'], input_type: 'search_query', embedding_types: ['float'] };

const ranking = [{ index: 1, relevance_score: 0.9 }];
const meta = { billed_units: { search_units: 1 } };

export const cohere: readonly Exchange[] = [
  {
    title: 'a ranking of Cohere',
    name: 'cohere.rerank',
    url: 'https://api.cohere.com/v2/rerank',
    provider: 'cohere',
    ...{ runType: 'retriever', body: { model: 'small', query: 'tea', documents: ['cup', 'leaf'], top_n: 1 } },
    ...{ inputs: { query: 'tea', documents: ['cup', 'leaf'] }, response: { id: 'c_1', results: ranking, meta } },
    metadata: { ls_model_type: 'rerank', ls_invocation_params: { model: 'small', top_n: 1 } },
    outputs: { ranking, meta },
  },
  exchangeOf(cohereChat, { title: 'Cohere' }),
  {
    title: 'embeddings of Cohere',
    name: 'cohere.embed',
    url: 'https://api.cohere.com/v2/embed',
    provider: 'cohere',
    ...{ runType: 'embedding', body: { model: 'small', ...embed }, inputs: { texts: ['tea', 'soup'] } },
    response: {
      id: 'e_1',
      embeddings: {
        float: [
          [1, 2],
          [3, 4],
        ],
      },
      texts: embed.texts,
      meta: { billed_units: { input_tokens: 2 } },
    },
    ...{ outputs: { count: 2, dimensions: 2 }, usage: { input_tokens: 2 } as Exchange['usage'] },
  },
];
