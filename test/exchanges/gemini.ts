// https://ai.google.dev/api/generate-content
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

const call = (id: string, name: string, args: object) => ({ functionCall: { id, name, args } });
const candidate = (parts: readonly object[], more: object = {}) => ({
  ...{ candidates: [{ content: { role: 'model', parts }, index: 0, ...more }] },
  modelVersion: 'small-2026',
});
const generationConfig = { temperature: 0.5, maxOutputTokens: 9 };
const tools = [{ functionDeclarations: [{ name: 'find' }] }];
const generationParameters = { temperature: 0.5, max_output_tokens: 9 };
const HOST = 'https://generativelanguage.googleapis.com/v1beta/models';

/** The recorded outputs, which have the form of other services. */
const outputs = (content: unknown, tool_calls: unknown, more: object = {}) => ({
  messages: [{ role: 'assistant', content, ...(tool_calls ? { tool_calls } : {}), finish_reason: 'STOP', ...more }],
});
const recorded = outputs(
  [
    { type: 'reasoning', reasoning: 'Hm, so.' },
    { type: 'text', text: 'It rains.' },
  ],
  [called('call_2', 'warn', '{"q":"a storm"}')],
);

export const generateContent: Format = {
  name: 'gemini.generateContent',
  url: `${HOST}/small:generateContent`,
  provider: 'google_genai',
  body: {
    ...{ generationConfig, tools, systemInstruction: { parts: [{ text: 'Be kind.' }] } },
    contents: [
      { role: 'user', parts: [{ text: 'See this.' }, { inlineData: { mimeType: 'image/png', data: PIXEL } }] },
      { role: 'model', parts: [call('call_1', 'find', { q: 1 })] },
      { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'find', response: { found: 2 } } }] },
    ],
  },
  asked: asked(),
  outputs: recorded,
  metadata: {
    ...{ ls_model_type: 'chat', ls_model_name: 'small', ls_temperature: 0.5, ls_max_tokens: 9 },
    ...{ ls_invocation_params: { model: 'small', tools, temperature: 0.5, max_output_tokens: 9 } },
    response_model: 'small-2026',
  },
  counts: {
    ...{ promptTokenCount: 5, toolUsePromptTokenCount: 2, candidatesTokenCount: 4, thoughtsTokenCount: 3 },
    ...{ totalTokenCount: 14, cachedContentTokenCount: 1 },
    ...{ promptTokensDetails: [{ modality: 'TEXT', tokenCount: 5 }] },
    ...{ candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 4 }] },
  },
  usage: tokens(7, 7, { cache_read: 1, tool_use: 2, text: 5 }, { reasoning: 3, text: 4 }),
  response: ({ thought, text, calls, unknown }, usageMetadata) => ({
    ...candidate(
      [
        { text: thought.join(''), thought: true },
        { text: text.join('') },
        ...calls.map((one) => call(one.id, one.name, JSON.parse(pieces(one).join('')))),
        ...(unknown ? [{ newPart: unknown }] : []),
      ],
      { finishReason: 'STOP' },
    ),
    usageMetadata,
  }),
  events: ({ thought, text, calls, unknown }: Answer, usageMetadata) => [
    ...thought.map((word) => candidate([{ text: word, thought: true }])),
    ...text.map((word) => candidate([{ text: word }])),
    // https://github.com/smallmain/vscode-unify-chat-provider/issues/49 shows the arguments in later parts.
    ...calls.flatMap(({ id, name, words }) => [
      candidate([{ functionCall: { id, name, willContinue: true } }]),
      ...words.map((stringValue) => {
        const partialArgs = [{ jsonPath: '$.q', stringValue, willContinue: true }];
        return candidate([{ functionCall: { partialArgs, willContinue: true } }]);
      }),
      candidate([{ functionCall: {} }]),
    ]),
    ...(unknown ? [candidate([{ newPart: unknown }])] : []),
    { candidates: [{ index: 0, finishReason: 'STOP' }], usageMetadata },
  ],
  error: [{ error: { code: 503, status: 'BUSY', message: 'too much' } }, 'BUSY: too much'],
};

// https://ai.google.dev/api/interactions-api. The total shows that thoughts are outside of the output.
const interactionCounts = {
  ...{ total_input_tokens: 7, total_output_tokens: 20, total_thought_tokens: 22, total_tokens: 49 },
  input_tokens_by_modality: [{ modality: 'text', tokens: 7 }],
};
const interaction = { id: 'v1_a', object: 'interaction', model: 'small-2026', status: 'completed' };
const search = [{ type: 'google_search' }];
const steps = ({ thought, text, calls, unknown }: Answer) => [
  { type: 'thought', summary: [{ type: 'text', text: thought.join('') }], signature: 's' },
  { type: 'model_output', content: [{ type: 'text', text: text.join('') }] },
  ...calls.map((one) => ({ ...stepOf(one), arguments: JSON.parse(pieces(one).join('')) })),
  ...(unknown ? [{ type: 'new', value: unknown }] : []),
];
const stepOf = ({ id, name }: Answer['calls'][number]) => ({ type: 'function_call', id, name });

/** Streams of the first version have contents instead of steps. Their calls are not streamed in pieces. */
function interactionEvents(kind: 'step' | 'content', answer: Answer, usage: object): object[] {
  const isFirst = kind === 'content';
  const event = (type: string, more: object) => ({ event_type: type, ...more });
  const streamed = (index: number, started: object, deltas: readonly object[]) => [
    event(`${kind}.start`, { index, [kind]: started }),
    ...deltas.map((delta) => event(`${kind}.delta`, { index, delta })),
  ];
  return [
    event('interaction.created', { interaction: { ...interaction, status: 'in_progress' } }),
    ...streamed(0, { type: 'thought' }, [
      ...answer.thought.map((word) => ({ type: 'thought_summary', content: { type: 'text', text: word } })),
      { type: 'thought_signature', signature: 's' },
    ]),
    ...streamed(
      1,
      { type: isFirst ? 'text' : 'model_output' },
      answer.text.map((text) => ({ type: 'text', text })),
    ),
    ...answer.calls.flatMap((one, at) => {
      const args = JSON.parse(pieces(one).join(''));
      if (isFirst) return streamed(at + 2, { type: 'function_call' }, [{ ...stepOf(one), arguments: args }]);
      const deltas = pieces(one).map((json) => ({ type: 'arguments_delta', arguments: json }));
      return streamed(at + 2, { ...stepOf(one), arguments: {} }, deltas);
    }),
    ...(answer.unknown ? streamed(9, { type: 'new', value: answer.unknown }, []) : []),
    event('interaction.completed', { interaction: { ...interaction, usage } }),
  ];
}

export const interactions: Format = {
  name: 'gemini.interactions',
  url: 'https://generativelanguage.googleapis.com/v1beta/interactions',
  provider: 'google_genai',
  body: {
    ...{ model: 'small', system_instruction: 'Be kind.', generation_config: generationParameters, tools: search },
    input: [
      {
        type: 'user_input',
        content: [
          { type: 'text', text: 'See this.' },
          { type: 'image', mime_type: 'image/png', data: PIXEL },
        ],
      },
      { type: 'function_call', id: 'call_1', name: 'find', arguments: { q: 1 } },
      { type: 'function_result', call_id: 'call_1', name: 'find', result: '{"found":2}' },
    ],
  },
  asked: asked(),
  metadata: {
    ...{ ls_model_type: 'chat', ls_model_name: 'small', ls_temperature: 0.5, ls_max_tokens: 9, response_id: 'v1_a' },
    ls_invocation_params: { model: 'small', ...generationParameters, tools: search },
  },
  counts: interactionCounts,
  usage: tokens(7, 42, { text: 7 }, { reasoning: 22 }),
  response: (answer, usage) => ({ ...interaction, steps: steps(answer), usage }),
  events: (answer, usage) => interactionEvents('step', answer, usage),
  error: [{ event_type: 'error', error: { code: 'busy', message: 'too much' } }, 'busy: too much'],
};

export const firstInteractions: Format = {
  ...interactions,
  events: (answer, usage) => interactionEvents('content', answer, usage),
};

const embedding = {
  name: 'gemini.embedContent',
  provider: 'google_genai',
  runType: 'embedding',
  metadata: { ls_model_type: 'embedding' },
};
const content = { parts: [{ text: 'tea' }] };
const vertex = 'https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models';

const failed = { status: 'failed', errors: [{ message: 'overloaded' }] };

export const gemini: readonly Exchange[] = [
  exchangeOf(interactions, { title: 'Gemini interactions' }),
  {
    ...exchangeOf(interactions, { title: 'an agent of Gemini that fails' }),
    ...{ body: { agent: 'deep-research', input: 'tea' }, asked: ['user: tea'], response: failed, events: undefined },
    ...{ error: 'overloaded', said: undefined, usage: undefined, counts: undefined, metadata: {} },
    inputs: { messages: [{ role: 'user', content: 'tea' }] },
  },
  exchangeOf(generateContent, { title: 'Gemini' }),
  exchangeOf(generateContent, {
    title: 'Gemini on Vertex AI',
    url: `${vertex}/small:streamGenerateContent`,
    provider: 'google_vertexai',
  }),
  {
    ...exchangeOf(generateContent, { title: 'Gemini, a blocked prompt' }),
    response: { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 } },
    events: [{ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 } }],
    ...{ outputs: { messages: [], promptFeedback: { blockReason: 'SAFETY' } }, said: [], metadata: {}, isSilent: true },
    ...{ counts: { promptTokenCount: 5, totalTokenCount: 5 }, usage: tokens(5, 0) },
  },
  {
    ...exchangeOf(generateContent, { title: 'Gemini, arguments of several kinds in later parts' }),
    response: undefined,
    events: [
      candidate([{ functionCall: { name: 'f', willContinue: true } }]),
      candidate([{ functionCall: { partialArgs: [{ jsonPath: '$.list[0].n', numberValue: 1 }], willContinue: true } }]),
      candidate([
        { functionCall: { partialArgs: [{ jsonPath: "$['list'][1]", boolValue: true }], willContinue: true } },
      ]),
      candidate([{ functionCall: {} }], { finishReason: 'STOP' }),
    ],
    outputs: outputs(undefined, [{ type: 'function', function: { name: 'f', arguments: '{"list":[{"n":1},true]}' } }]),
    ...{ said: ['assistant: calls f({"list":[{"n":1},true]})'], counts: {}, usage: undefined },
  },
  {
    ...{ ...embedding, title: 'an embedding of Gemini', url: `${HOST}/small:embedContent`, body: { content } },
    response: { embedding: { values: [0.5, 0.25, 1] } },
    inputs: { input: ['tea'] },
    outputs: { count: 1, dimensions: 3 },
  },
  {
    ...{ ...embedding, title: 'embeddings of Gemini', url: `${HOST}/small:batchEmbedContents` },
    ...{ body: { requests: [{ content }, { content }] }, response: { embeddings: [{ values: [1] }, { values: [2] }] } },
    ...{ inputs: { input: ['tea', 'tea'] }, outputs: { count: 2, dimensions: 1 } },
  },
];
