// https://docs.mistral.ai/agents/agents_basics and https://docs.mistral.ai/capabilities/reasoning
import {
  type Answer,
  asked,
  called,
  type Exchange,
  exchangeOf,
  type Format,
  PIXEL,
  pieces,
  tokens,
} from './exchange.ts';
import { chat, delta } from './openai.ts';

const thinking = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] });

export const mistral: Format = {
  ...chat,
  events: (answer, usage) => [
    delta({ role: 'assistant', content: null }),
    ...answer.thought.map((text) => delta({ content: [thinking(text)] })),
    ...(answer.unknown ? [delta({ content: [{ type: 'new', value: answer.unknown }] })] : []),
    ...answer.text.map((content) => delta({ content })),
    ...answer.calls.map((call, index) => {
      const json = pieces(call).join('');
      return delta({ tool_calls: [{ index, ...called(call.id, call.name, json) }] });
    }),
    { ...delta({ content: '' }, { finish_reason: 'stop' }), usage },
  ],
  error: [{ object: 'error', type: 'busy', message: 'too much' }, 'busy: too much'],
};

const head = { id: 'msg_1', model: 'small-2026', role: 'assistant' };
const callOf = ({ id, name }: Answer['calls'][number], at: number) => ({ id: `fc_${at}`, tool_call_id: id, name });
const image = `data:image/png;base64,${PIXEL}`;

export const conversations: Format = {
  name: 'mistral.conversations',
  url: 'https://api.mistral.ai/v1/conversations',
  provider: 'mistralai',
  body: {
    ...{ agent_id: 'ag_1', instructions: 'Be kind.', stream: false, completion_args: { temperature: 0.5 } },
    inputs: [
      {
        ...{ object: 'entry', type: 'message.input', role: 'user' },
        content: [
          { type: 'text', text: 'See this.' },
          { type: 'image_url', image_url: image },
        ],
      },
      { object: 'entry', type: 'function.call', id: 'fc', tool_call_id: 'call_1', name: 'find', arguments: '{"q":1}' },
      { object: 'entry', type: 'function.result', tool_call_id: 'call_1', result: '{"found":2}' },
    ],
  },
  asked: asked(),
  metadata: { ls_model_type: 'chat', ls_model_name: 'small-2026', ls_temperature: 0.5, response_model: 'small-2026' },
  // https://docs.mistral.ai/agents/connectors/websearch
  counts: { prompt_tokens: 188, completion_tokens: 55, total_tokens: 7355, connector_tokens: 7112 },
  usage: tokens(7300, 55, { tool_use: 7112 }),
  response: ({ thought, text, calls, unknown }, usage) => ({
    conversation_id: 'conv_1',
    outputs: [
      {
        ...{ type: 'message.output', ...head },
        content: [
          thinking(thought.join('')),
          { type: 'text', text: text.join('') },
          ...(unknown ? [{ type: 'new', value: unknown }] : []),
        ],
      },
      ...calls.map((call, at) => ({ type: 'function.call', ...callOf(call, at), arguments: pieces(call).join('') })),
    ],
    usage,
  }),
  events: ({ thought, text, calls, unknown }, usage) => {
    const output = (content: unknown) => ({ type: 'message.output.delta', output_index: 0, ...head, content });
    return [
      { type: 'conversation.response.started', conversation_id: 'conv_1' },
      ...thought.map((word) => output(thinking(word))),
      ...text.map(output),
      ...(unknown ? [output({ type: 'new', value: unknown })] : []),
      ...calls.flatMap((call, at) =>
        pieces(call).map((json) => ({
          ...{ type: 'function.call.delta', output_index: at + 1, ...callOf(call, at), arguments: json },
        })),
      ),
      { type: 'conversation.response.done', usage },
    ];
  },
  error: [{ type: 'conversation.response.error', code: 3, message: 'too much' }, '3: too much'],
};

const pages = [{ index: 0, markdown: '# Tea', images: [], dimensions: null }];

export const ofMistral: readonly Exchange[] = [
  exchangeOf(conversations, { title: 'Mistral conversations' }),
  exchangeOf(conversations, {
    ...{ title: 'Mistral, a message appended to a conversation', url: `${conversations.url}/conv_1` },
    metadata: { thread_id: 'conv_1', ls_temperature: 0.5 },
  }),
  {
    ...{ title: 'a page read by Mistral', name: 'mistral.ocr', url: 'https://api.mistral.ai/v1/ocr' },
    ...{ provider: 'mistralai', body: { model: 'small', document: { type: 'document_url', document_url: image } } },
    ...{ inputs: { document: { document_url: image } }, metadata: { ls_model_name: 'small', response_model: 'ocr' } },
    response: { pages, model: 'ocr', usage_info: { pages_processed: 1 } },
  },
];
