// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html
import { asked, type Exchange, exchangeOf, type Format, PIXEL, pieces, tokens } from './exchange.ts';

const delta = (contentBlockIndex: number, value: object) => ({
  contentBlockDelta: { contentBlockIndex, delta: value },
});
const toolSpec = { name: 'find', inputSchema: { json: { type: 'object' } } };

export const converse: Format = {
  name: 'bedrock.converse',
  url: 'https://bedrock-runtime.us-east-1.amazonaws.com/model/small/converse',
  provider: 'amazon_bedrock',
  body: {
    modelId: 'small',
    system: [{ text: 'Be kind.' }],
    messages: [
      {
        role: 'user',
        content: [{ text: 'See this.' }, { image: { format: 'png', source: { bytes: PIXEL } } }],
      },
      { role: 'assistant', content: [{ toolUse: { toolUseId: 'call_1', name: 'find', input: { q: 1 } } }] },
      { role: 'user', content: [{ toolResult: { toolUseId: 'call_1', content: [{ json: { found: 2 } }] } }] },
    ],
    inferenceConfig: { maxTokens: 9, temperature: 0.5, stopSequences: ['END'] },
    toolConfig: { tools: [{ toolSpec }] },
  },
  asked: asked('user'),
  metadata: {
    ...{ ls_model_type: 'chat', ls_model_name: 'small', ls_temperature: 0.5, ls_max_tokens: 9, ls_stop: ['END'] },
    ls_invocation_params: {
      ...{ model: 'small', max_tokens: 9, temperature: 0.5, stop_sequences: ['END'], tools: [toolSpec] },
    },
  },
  // 20 input tokens were read from the cache, 6 were written for an hour and 2 for five minutes, and 3 were neither:
  // https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
  counts: {
    ...{ inputTokens: 3, outputTokens: 5, totalTokens: 36, cacheReadInputTokens: 20, cacheWriteInputTokens: 8 },
    cacheDetails: [
      { ttl: '1h', inputTokens: 6 },
      { ttl: '5m', inputTokens: 2 },
    ],
  },
  usage: tokens(31, 5, { cache_read: 20, ephemeral_5m_input_tokens: 2, ephemeral_1hr_input_tokens: 6 }),
  response: ({ thought, text, calls, unknown }, usage) => ({
    output: {
      message: {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: thought.join(''), signature: 'c2ln' } } },
          { text: text.join('') },
          ...calls.map((call) => ({
            toolUse: { toolUseId: call.id, name: call.name, input: JSON.parse(pieces(call).join('')) },
          })),
          ...(unknown ? [{ newPart: unknown }] : []),
        ],
      },
    },
    stopReason: 'end_turn',
    usage,
    metrics: { latencyMs: 5 },
  }),
  events: ({ thought, text, calls, unknown }, usage) => [
    { messageStart: { role: 'assistant' } },
    ...thought.map((word) => delta(0, { reasoningContent: { text: word } })),
    delta(0, { reasoningContent: { signature: 'c2ln' } }),
    { contentBlockStop: { contentBlockIndex: 0 } },
    ...text.map((word) => delta(1, { text: word })),
    ...calls.flatMap((call, at) => [
      { contentBlockStart: { contentBlockIndex: at + 2, start: { toolUse: { toolUseId: call.id, name: call.name } } } },
      ...pieces(call).map((input) => delta(at + 2, { toolUse: { input } })),
    ]),
    ...(unknown ? [delta(9, { newPart: unknown })] : []),
    { messageStop: { stopReason: 'end_turn' } },
    { metadata: { usage, metrics: { latencyMs: 5 } } },
  ],
  error: [{ error: { code: 'busy', message: 'too much' } }, 'busy: too much'],
};

const few = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
const blocks = (block: object) => ({
  ...{ output: { message: { role: 'assistant', content: [block] } }, stopReason: 'end_turn', usage: few },
});
/** A message of which only the blocks matter. */
function blocksOf(title: string, block: object, events: readonly object[], more: Partial<Exchange>): Exchange {
  const [first, last] = [{ messageStart: { role: 'assistant' } }, { messageStop: { stopReason: 'end_turn' } }];
  const given = { response: blocks(block), events: [first, ...events, last, { metadata: { usage: few } }] };
  return exchangeOf(converse, { title: `Bedrock, ${title}`, ...given, counts: few, usage: tokens(1, 2), ...more });
}
const start = (value: object) => ({ contentBlockStart: { contentBlockIndex: 0, start: value } });
const citations = ['x', 'y'].map((title) => ({ title }));
const used = { toolUseId: 't', name: 'now' };

export const bedrock: readonly Exchange[] = [
  exchangeOf(converse, { title: 'Bedrock' }),
  exchangeOf(converse, {
    title: 'Bedrock, whose input includes cached tokens',
    counts: { ...converse.counts, inputTokens: 31 },
  }),
  blocksOf(
    'citations',
    { citationsContent: { content: [{ text: 'a' }], citations } },
    [delta(0, { text: 'a' }), ...citations.map((citation) => delta(0, { citation }))],
    {
      said: ['assistant: a'],
      streamed: { output: { message: { role: 'assistant', content: [{ text: 'a', citations }] } } },
    },
  ),
  blocksOf(
    'hidden thoughts',
    { reasoningContent: { redactedContent: 'eA==' } },
    [delta(0, { reasoningContent: { redactedContent: 'eA==' } })],
    {
      ...{ said: ['assistant: reasoning (hidden by the provider)'], isSilent: true },
      outputs: blocks({ reasoningContent: { redactedContent: { type: 'Uint8Array', byteLength: 1, base64: 'eA==' } } }),
    },
  ),
  blocksOf('a tool without input', { toolUse: { ...used, input: {} } }, [start({ toolUse: used })], {
    said: ['assistant: calls now({})#t'],
    isSilent: true,
  }),
  blocksOf(
    'a result of a tool of the service',
    { toolResult: { toolUseId: 't', content: [{ text: 'a' }] } },
    [start({ toolResult: { toolUseId: 't' } }), delta(0, { toolResult: [{ text: 'a' }] })],
    { said: ['assistant: returned "a"#t'] },
  ),
];
