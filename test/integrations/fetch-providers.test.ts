// Calls of the SDKs that use `fetch`, against a server with the wire formats of their services.
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { Mistral } from '@mistralai/mistralai';
import { CohereClientV2 } from 'cohere-ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { expect, onTestFinished, test, vi } from 'vitest';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { record } from '../instrument/recorder.ts';
import { chunksOf, onlyRun } from './local-openai.ts';
import { events, json, lines, serveWire, type WireResponse } from './wire-server.ts';

type Row = [title: string, response: WireResponse, call: (url: string) => unknown, expected: object];

const question = [{ role: 'user' as const, content: 'What is tea?' }];
const usage = (input: number, output: number) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
});
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const metadata = (provider: string, model: string, more: object = {}) => ({
  metadata: { ls_provider: provider, ls_model_name: model, ...more },
});
const token = [{ name: 'new_token' }];

const gemini = (url: string) => new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: url } });
const geminiChunk = (parts: object[], more: object = {}, finishReason?: string) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, finishReason }],
  modelVersion: 'gemini-2.5-flash-001',
  ...more,
});
const geminiUsage = {
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 4, thoughtsTokenCount: 3, totalTokenCount: 12 },
};

const geminiRows: Row[] = [
  [
    'generateContent of Gemini',
    json(
      geminiChunk(
        [
          { text: 'Let me see', thought: true },
          { text: 'A drink.' },
          { functionCall: { name: 'look_up', args: { q: 1 } } },
        ],
        { usageMetadata: { ...geminiUsage.usageMetadata, promptTokensDetails: [{ modality: 'TEXT', tokenCount: 5 }] } },
        'STOP',
      ),
    ),
    (url) =>
      gemini(url).models.generateContent({
        model: 'gemini-2.5-flash',
        contents: [
          { role: 'user', parts: [{ text: 'What is tea?' }, { inlineData: { mimeType: 'image/png', data: pixel } }] },
        ],
        config: { systemInstruction: 'Be brief', temperature: 0.5, maxOutputTokens: 9, tools: [{ googleSearch: {} }] },
      }),
    {
      name: 'gemini.generateContent',
      run_type: 'llm',
      inputs: {
        messages: [
          { role: 'system', content: 'Be brief' },
          { role: 'user', content: [{ type: 'text', text: 'What is tea?' }, { type: 'image_url' }] },
        ],
      },
      outputs: {
        messages: [
          {
            role: 'assistant',
            content: [
              { type: 'reasoning', reasoning: 'Let me see' },
              { type: 'text', text: 'A drink.' },
            ],
            tool_calls: [{ type: 'function', function: { name: 'look_up', arguments: '{"q":1}' } }],
            finish_reason: 'STOP',
          },
        ],
        usage_metadata: {
          ...usage(5, 7),
          input_token_details: { text: 5 },
          output_token_details: { reasoning: 3 },
        },
      },
      extra: metadata('google_genai', 'gemini-2.5-flash', {
        ls_temperature: 0.5,
        ls_max_tokens: 9,
        response_model: 'gemini-2.5-flash-001',
        ls_invocation_params: { tools: [{ googleSearch: {} }] },
      }),
    },
  ],
  [
    'generateContentStream of Gemini',
    events(
      geminiChunk([{ text: 'Hm', thought: true }]),
      geminiChunk([{ text: 'A ' }]),
      geminiChunk([{ text: 'drink.' }], geminiUsage, 'STOP'),
    ),
    async (url) => {
      const request = { model: 'gemini-2.5-flash', contents: 'What is tea?' };
      await chunksOf(await gemini(url).models.generateContentStream(request));
    },
    {
      inputs: { messages: question },
      outputs: {
        messages: [
          {
            role: 'assistant',
            content: [
              { type: 'reasoning', reasoning: 'Hm' },
              { type: 'text', text: 'A drink.' },
            ],
            finish_reason: 'STOP',
          },
        ],
        usage_metadata: usage(5, 7),
      },
      events: token,
    },
  ],
  [
    'embedContent of Gemini',
    json({ embeddings: [{ values: [0.5, 0.25, 1] }] }),
    (url) => gemini(url).models.embedContent({ model: 'gemini-embedding-001', contents: ['tea'] }),
    {
      name: 'gemini.embedContent',
      run_type: 'embedding',
      inputs: { input: ['tea'] },
      outputs: { count: 1, dimensions: 3 },
      extra: metadata('google_genai', 'gemini-embedding-001'),
    },
  ],
];

/** The counts are those of https://ai.google.dev/api/interactions-api. The total shows that thoughts are outside of the output. */
const interactionUsage = {
  total_input_tokens: 7,
  input_tokens_by_modality: [{ modality: 'text', tokens: 7 }],
  total_output_tokens: 20,
  total_thought_tokens: 22,
  total_tokens: 49,
};
const interaction = { id: 'v1_a', object: 'interaction', model: 'gemini-3-flash', status: 'completed' };
const called = { type: 'function_call', id: 'c', name: 'look_up', arguments: { q: 1 } };
const thought = { type: 'thought', summary: [{ type: 'text', text: 'Let me see' }], signature: 's' };
const answered = { type: 'model_output', content: [{ type: 'text', text: 'A drink.' }] };
const started = (index: number, step: object) => ({ event_type: 'step.start', index, step });
const delta = (index: number, given: object) => ({ event_type: 'step.delta', index, delta: given });
const base64 = `iVBORw0K${'A'.repeat(2_000)}`;
const image = `data:image/png;base64,${base64}`;
const attached = expect.stringContaining('Attachment inputs_1: image/png');

const interactionRows: Row[] = [
  [
    'an interaction of Gemini',
    json({ ...interaction, steps: [thought, answered, called], usage: interactionUsage }),
    (url) =>
      gemini(url).interactions.create({
        model: 'gemini-3-flash',
        previous_interaction_id: 'v1_0',
        system_instruction: 'Be brief',
        input: [
          { type: 'user_input', content: [{ type: 'image', mime_type: 'image/png', data: base64 }] },
          { type: 'function_result', call_id: 'b', name: 'look_up', result: 'none' },
        ],
        tools: [{ type: 'google_search' }],
        generation_config: { temperature: 0.5, max_output_tokens: 9 },
      }),
    {
      name: 'gemini.interactions',
      inputs: {
        messages: [
          { role: 'system', content: 'Be brief' },
          { type: 'user_input', content: [{ type: 'image', data: attached }] },
          { type: 'function_result', call_id: 'b', result: 'none' },
        ],
      },
      outputs: {
        status: 'completed',
        steps: [thought, answered, called],
        usage_metadata: { ...usage(7, 42), output_token_details: { reasoning: 22 } },
      },
      extra: metadata('google_genai', 'gemini-3-flash', {
        ls_temperature: 0.5,
        ls_max_tokens: 9,
        response_id: 'v1_a',
        ls_invocation_params: { tools: [{ type: 'google_search' }], previous_interaction_id: 'v1_0' },
      }),
    },
  ],
  [
    'a streamed interaction of Gemini',
    events(
      { event_type: 'interaction.created', interaction: { ...interaction, status: 'in_progress' } },
      started(0, { type: 'thought' }),
      delta(0, { type: 'thought_summary', content: { type: 'text', text: 'Let me ' } }),
      delta(0, { type: 'thought_summary', content: { type: 'text', text: 'see' } }),
      delta(0, { type: 'thought_signature', signature: 's' }),
      started(1, { type: 'model_output', content: [{ type: 'text', text: 'A ' }] }),
      delta(1, { type: 'text', text: 'drink.' }),
      started(2, { ...called, arguments: {} }),
      delta(2, { type: 'arguments_delta', arguments: '{"q":' }),
      delta(2, { type: 'arguments_delta', arguments: '1}' }),
      { event_type: 'step.stop', index: 2 },
      { event_type: 'interaction.completed', interaction: { ...interaction, usage: interactionUsage } },
      '[DONE]',
    ),
    async (url) => {
      const input = { type: 'text', text: 'What is tea?' } as const;
      const request = { model: 'gemini-3-flash', input, stream: true } as const;
      await chunksOf(await gemini(url).interactions.create(request));
    },
    {
      inputs: { messages: [{ role: 'user', content: [{ type: 'text', text: 'What is tea?' }] }] },
      outputs: { status: 'completed', steps: [thought, answered, called], usage_metadata: usage(7, 42) },
      events: token,
    },
  ],
];

const mistral = (url: string) => new Mistral({ apiKey: 'none', serverURL: url });
const mistralChunk = (delta: object, reason: string | null = null, more: object = {}) => ({
  id: 'cmpl_1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'mistral-small-latest',
  choices: [{ index: 0, delta, finish_reason: reason }],
  ...more,
});
const mistralUsage = { usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } };

const entryHead = { id: 'msg_1', model: 'mistral-small', role: 'assistant' };
const entry = { type: 'message.output', ...entryHead, content: 'A drink.' };
const entryDelta = (content: string) => ({ ...entryHead, type: 'message.output.delta', output_index: 0, content });

const mistralRows: Row[] = [
  [
    'chat.complete of Mistral',
    json({
      id: 'cmpl_1',
      object: 'chat.completion',
      created: 1,
      model: 'mistral-small-latest',
      choices: [{ index: 0, message: { role: 'assistant', content: 'A drink.' }, finish_reason: 'stop' }],
      ...mistralUsage,
    }),
    (url) => mistral(url).chat.complete({ model: 'mistral-small-latest', messages: question, temperature: 0.5 }),
    {
      name: 'openai.chat.completions',
      inputs: { messages: question },
      outputs: { choices: [{ message: { content: 'A drink.' } }], usage_metadata: usage(5, 3) },
      extra: { metadata: { ls_model_name: 'mistral-small-latest', ls_temperature: 0.5 } },
    },
  ],
  [
    'fim.complete of Mistral',
    json({
      id: 'cmpl_1',
      object: 'chat.completion',
      created: 1,
      model: 'codestral-latest',
      choices: [{ index: 0, message: { role: 'assistant', content: '1' }, finish_reason: 'stop' }],
      ...mistralUsage,
    }),
    (url) => mistral(url).fim.complete({ model: 'codestral-latest', prompt: 'const a = ', suffix: ';' }),
    {
      name: 'mistral.fim',
      inputs: { prompt: 'const a = ', suffix: ';' },
      outputs: { choices: [{ message: { content: '1' } }] },
    },
  ],
  [
    'embeddings of Mistral',
    json({
      id: 'e',
      object: 'list',
      model: 'mistral-embed',
      data: [{ object: 'embedding', index: 0, embedding: [1, 2] }],
      ...mistralUsage,
    }),
    (url) => mistral(url).embeddings.create({ model: 'mistral-embed', inputs: ['tea'] }),
    { run_type: 'embedding', inputs: { input: ['tea'] }, outputs: { count: 1, dimensions: 2 } },
  ],
  [
    'a conversation of Mistral',
    json({
      ...{ object: 'conversation.response', conversation_id: 'conv_1', outputs: [entry] },
      // https://docs.mistral.ai/agents/connectors/websearch
      usage: { prompt_tokens: 188, completion_tokens: 55, total_tokens: 7355, connector_tokens: 7112 },
    }),
    (url) =>
      mistral(url).beta.conversations.start({ agentId: 'ag_1', inputs: 'What is tea?', instructions: 'Be brief' }),
    {
      name: 'mistral.conversations',
      inputs: { messages: [{ role: 'system', content: 'Be brief' }, ...question] },
      outputs: {
        outputs: [entry],
        usage_metadata: { ...usage(7300, 55), input_token_details: { tool_use: 7112 } },
      },
      extra: { metadata: { response_model: 'mistral-small', ls_invocation_params: { agent_id: 'ag_1' } } },
    },
  ],
  [
    'a streamed message in a conversation of Mistral',
    events(
      { type: 'conversation.response.started', conversation_id: 'conv_1' },
      entryDelta('A '),
      entryDelta('drink.'),
      { type: 'conversation.response.done', ...mistralUsage },
    ),
    async (url) => {
      const conversationAppendStreamRequest = { inputs: question, completionArgs: { temperature: 0.5 } };
      const request = { conversationId: 'conv_1', conversationAppendStreamRequest };
      await chunksOf(await mistral(url).beta.conversations.appendStream(request));
    },
    {
      inputs: { messages: question },
      outputs: { conversation_id: 'conv_1', outputs: [entry], usage_metadata: usage(5, 3) },
      extra: { metadata: { thread_id: 'conv_1', ls_temperature: 0.5 } },
      events: token,
    },
  ],
  [
    'ocr of Mistral',
    json({
      pages: [{ index: 0, markdown: '# Tea', images: [], dimensions: null }],
      model: 'ocr',
      usage_info: { pages_processed: 1 },
    }),
    (url) =>
      mistral(url).ocr.process({ model: 'mistral-ocr-latest', document: { type: 'document_url', documentUrl: image } }),
    {
      name: 'mistral.ocr',
      inputs: { document: { document_url: attached } },
      outputs: { pages: [{ markdown: '# Tea' }], usage_info: { pages_processed: 1 } },
      extra: metadata('mistralai', 'mistral-ocr-latest', { response_model: 'ocr' }),
    },
  ],
];

const cohere = (url: string) =>
  new CohereClientV2({ token: 'none', environment: url, logging: { silent: true } } as never);
const cohereUsage = {
  billed_units: { input_tokens: 4, output_tokens: 2 },
  tokens: { input_tokens: 5, output_tokens: 3 },
};

const cohereRows: Row[] = [
  [
    'rerank of Cohere',
    json({ id: 'c_1', results: [{ index: 1, relevance_score: 0.9 }], meta: { billed_units: { search_units: 1 } } }),
    (url) => cohere(url).rerank({ model: 'rerank-v3.5', query: 'tea', documents: ['cup', 'leaf'], topN: 1 }),
    {
      name: 'cohere.rerank',
      run_type: 'retriever',
      inputs: { query: 'tea', documents: ['cup', 'leaf'] },
      outputs: { ranking: [{ index: 1, relevance_score: 0.9 }], meta: { billed_units: { search_units: 1 } } },
      extra: metadata('cohere', 'rerank-v3.5', { ls_model_type: 'rerank', ls_invocation_params: { top_n: 1 } }),
    },
  ],
  [
    'chat of Cohere',
    json({
      id: 'c_1',
      finish_reason: 'COMPLETE',
      message: { role: 'assistant', content: [{ type: 'text', text: 'A drink.' }] },
      usage: cohereUsage,
    }),
    (url) => cohere(url).chat({ model: 'command-a-03-2025', messages: question, maxTokens: 9 }),
    {
      name: 'cohere.chat',
      inputs: { messages: question },
      outputs: { message: { content: [{ type: 'text', text: 'A drink.' }] }, usage_metadata: usage(5, 3) },
      extra: metadata('cohere', 'command-a-03-2025', { ls_max_tokens: 9 }),
    },
  ],
  [
    'chatStream of Cohere',
    events(
      { type: 'message-start', id: 'c_1', delta: { message: { role: 'assistant', content: [], tool_calls: [] } } },
      { type: 'tool-plan-delta', delta: { message: { tool_plan: 'I know it.' } } },
      { type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } },
      { type: 'content-delta', index: 0, delta: { message: { content: { text: 'A drink.' } } } },
      { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage: cohereUsage } },
    ),
    async (url) => {
      await chunksOf(await cohere(url).chatStream({ model: 'command-a-03-2025', messages: question }));
    },
    {
      outputs: {
        id: 'c_1',
        finish_reason: 'COMPLETE',
        message: { role: 'assistant', tool_plan: 'I know it.', content: [{ type: 'text', text: 'A drink.' }] },
        usage_metadata: usage(5, 3),
      },
      events: token,
    },
  ],
  [
    'embed of Cohere',
    json({
      id: 'e_1',
      embeddings: {
        float: [
          [1, 2],
          [3, 4],
        ],
      },
      texts: ['tea', 'soup'],
      meta: { billed_units: { input_tokens: 2 } },
    }),
    (url) =>
      cohere(url).embed({
        model: 'embed-v4.0',
        texts: ['tea', 'soup'],
        inputType: 'search_query',
        embeddingTypes: ['float'],
      }),
    {
      name: 'cohere.embed',
      run_type: 'embedding',
      inputs: { texts: ['tea', 'soup'] },
      outputs: { count: 2, dimensions: 2, usage_metadata: { input_tokens: 2 } },
    },
  ],
];

const ollamaLine = (fields: object) => ({
  model: 'llama3.2',
  created_at: '2026-11-22T00:00:00Z',
  done: false,
  ...fields,
});
const ollamaEnd = { done: true, done_reason: 'stop', prompt_eval_count: 5, eval_count: 3 };

const ollamaRows: Row[] = [
  [
    'chat of Ollama',
    json(ollamaLine({ message: { role: 'assistant', content: 'A drink.' }, ...ollamaEnd })),
    (host) =>
      new Ollama({ host }).chat({
        model: 'llama3.2',
        messages: [{ role: 'user', content: 'What is this?', images: [pixel] }],
        options: { temperature: 0.5, num_predict: 9 },
      }),
    {
      name: 'ollama.chat',
      inputs: { messages: [{ content: [{ type: 'text', text: 'What is this?' }, { type: 'image_url' }] }] },
      outputs: { message: { role: 'assistant', content: 'A drink.' }, usage_metadata: usage(5, 3) },
      extra: metadata('ollama', 'llama3.2', { ls_temperature: 0.5, ls_max_tokens: 9 }),
    },
  ],
  [
    'a streamed chat of Ollama',
    lines(
      ollamaLine({ message: { role: 'assistant', content: '', thinking: 'Hm' } }),
      ollamaLine({ message: { role: 'assistant', content: 'A ' } }),
      ollamaLine({
        message: {
          role: 'assistant',
          content: 'drink.',
          tool_calls: [{ function: { name: 'f', arguments: { q: 1 } } }],
        },
      }),
      ollamaLine({ message: { role: 'assistant', content: '' }, ...ollamaEnd }),
    ),
    async (host) => {
      await chunksOf(await new Ollama({ host }).chat({ model: 'llama3.2', messages: question, stream: true }));
    },
    {
      outputs: {
        message: {
          role: 'assistant',
          content: 'A drink.',
          thinking: 'Hm',
          tool_calls: [{ function: { name: 'f', arguments: { q: 1 } } }],
        },
        done_reason: 'stop',
        usage_metadata: usage(5, 3),
      },
      events: token,
    },
  ],
  [
    'a streamed generate of Ollama',
    lines(ollamaLine({ response: 'A ' }), ollamaLine({ response: 'drink.', ...ollamaEnd })),
    async (host) => {
      await chunksOf(await new Ollama({ host }).generate({ model: 'llama3.2', prompt: 'What is tea?', stream: true }));
    },
    {
      name: 'ollama.generate',
      inputs: { prompt: 'What is tea?' },
      outputs: { response: 'A drink.', usage_metadata: usage(5, 3) },
    },
  ],
  [
    'embed of Ollama',
    json({ model: 'all-minilm', embeddings: [[1, 2, 3]], prompt_eval_count: 2 }),
    (host) => new Ollama({ host }).embed({ model: 'all-minilm', input: 'tea' }),
    {
      name: 'ollama.embed',
      run_type: 'embedding',
      inputs: { input: 'tea' },
      outputs: { count: 1, dimensions: 3, usage_metadata: { input_tokens: 2 } },
    },
  ],
];

const anthropic = (url: string) => new Anthropic({ apiKey: 'none', baseURL: url });
const claude = { id: 'm_1', type: 'message', role: 'assistant', model: 'claude-opus-4-8', stop_reason: 'end_turn' };

/** https://console.groq.com/docs/api-reference: the last chunk contains the tokens. */
const groq = events(
  { choices: [{ index: 0, delta: { content: 'A drink.' } }], model: 'llama', x_groq: { id: 'req_1' } },
  {
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    model: 'llama',
    x_groq: { id: 'req_1', usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8, total_time: 0.1 } },
  },
  '[DONE]',
);
const groqRows = [false, true].map((isWrapped): Row => {
  return [
    `a stream of Groq${isWrapped ? ', by a wrapped client,' : ''}`,
    groq,
    async (url) => {
      const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/openai/v1` });
      const { chat } = isWrapped ? wrapOpenAI(client) : client;
      await chunksOf(await chat.completions.create({ model: 'llama', messages: question, stream: true }));
    },
    {
      outputs: { choices: [{ message: { content: 'A drink.' } }], usage_metadata: usage(5, 3) },
      extra: { metadata: { usage_metadata: usage(5, 3) } },
    },
  ];
});

const otherRows: Row[] = [
  ...groqRows,
  [
    'messages.create of Anthropic',
    json({ ...claude, content: [{ type: 'text', text: 'A drink.' }], usage: { input_tokens: 5, output_tokens: 3 } }),
    (url) =>
      anthropic(url).messages.create({
        model: 'claude-opus-4-8',
        max_tokens: 9,
        system: 'Be brief',
        messages: question,
      }),
    {
      name: 'anthropic.messages',
      inputs: { messages: [{ role: 'system', content: 'Be brief' }, ...question] },
      outputs: { content: [{ type: 'text', text: 'A drink.' }], usage_metadata: usage(5, 3) },
      extra: metadata('anthropic', 'claude-opus-4-8', { ls_max_tokens: 9 }),
    },
  ],
  [
    'messages.stream of Anthropic',
    events(
      {
        type: 'message_start',
        message: { ...claude, content: [], stop_reason: null, usage: { input_tokens: 5, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'A drink.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } },
      { type: 'message_stop' },
    ),
    (url) =>
      anthropic(url).messages.stream({ model: 'claude-opus-4-8', max_tokens: 9, messages: question }).finalMessage(),
    {
      outputs: { content: [{ type: 'text', text: 'A drink.' }], stop_reason: 'end_turn', usage_metadata: usage(5, 3) },
      events: token,
    },
  ],
  [
    'audio.transcriptions of OpenAI',
    json({ text: 'What is tea?', usage: { type: 'tokens', input_tokens: 5, output_tokens: 3, total_tokens: 8 } }),
    (url) =>
      new OpenAI({ apiKey: 'none', baseURL: `${url}/v1` }).audio.transcriptions.create({
        model: 'gpt-4o-transcribe',
        file: new File([new Uint8Array(2_000)], 'tea.wav', { type: 'audio/wav' }),
        language: 'en',
      }),
    {
      name: 'openai.audio.transcriptions',
      inputs: { file: { byteLength: 2_000, attachment: 'inputs_1' } },
      outputs: { text: 'What is tea?', usage_metadata: usage(5, 3) },
      extra: metadata('openai', 'gpt-4o-transcribe', {
        ls_invocation_params: { model: 'gpt-4o-transcribe', language: 'en' },
      }),
    },
  ],
  [
    'audio.speech of OpenAI',
    { type: 'audio/mpeg', parts: [new Uint8Array(3_000), new Uint8Array(1_000)] },
    async (url) => {
      const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1` });
      const speech = await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Tea' });
      expect((await speech.arrayBuffer()).byteLength).toBe(4_000);
    },
    {
      name: 'openai.audio.speech',
      inputs: { input: 'Tea' },
      outputs: { audio: { byteLength: 4_000, attachment: 'outputs_1' } },
      extra: metadata('openai', 'tts-1'),
    },
  ],
  [
    'a chat completion of an Azure deployment',
    json({
      object: 'chat.completion',
      model: 'gpt-4o-2024-08-06',
      choices: [{ index: 0, message: { role: 'assistant', content: 'A drink.' } }],
    }),
    async (url) => {
      const path = '/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21';
      const body = JSON.stringify({ model: '', messages: question });
      const response = await fetch(url + path, { method: 'POST', body });
      await response.json();
    },
    { outputs: { choices: [{ message: { content: 'A drink.' } }] }, extra: metadata('azure', 'my-gpt') },
  ],
];

test.each([...geminiRows, ...interactionRows, ...mistralRows, ...cohereRows, ...ollamaRows, ...otherRows])(
  '%s is recorded',
  async (_title, response, call, expected) => {
    const recorder = record();
    onTestFinished(recordFetch());
    await call(await serveWire(response));
    const run = onlyRun(recorder.runs);
    expect(run).toMatchObject({ run_type: 'llm', ...expected });
    expect(run.error).toBeUndefined();
    expect(run.end_time).toBeDefined();
    expect(run.extra?.metadata).not.toHaveProperty('unreadable');
    expect(JSON.stringify(recorder.runs)).not.toContain('secret-key');
  },
);

const failed = { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } };
test.each<[string, string, WireResponse, string]>([
  [
    'Gemini',
    '/v1beta/models/gemini-2.5-flash:streamGenerateContent',
    events(geminiChunk([{ text: 'A' }]), failed),
    'UNAVAILABLE: overloaded',
  ],
  [
    'Gemini that is not an event',
    '/v1beta/models/gemini-2.5-flash:streamGenerateContent',
    {
      type: 'text/event-stream',
      parts: [...events(geminiChunk([{ text: 'A' }])).parts, JSON.stringify(failed, undefined, 2)],
    },
    'UNAVAILABLE: overloaded',
  ],
  [
    'an OpenAI-compatible service',
    '/v1/chat/completions',
    events(mistralChunk({ content: 'A' }), { error: { code: 'busy', message: 'overloaded' } }),
    'busy: overloaded',
  ],
  [
    'Ollama',
    '/api/chat',
    lines(ollamaLine({ message: { role: 'assistant', content: 'A' } }), { error: 'overloaded' }),
    'overloaded',
  ],
  [
    'Anthropic',
    '/v1/messages',
    events({ type: 'error', error: { type: 'overloaded_error', message: 'overloaded' } }),
    'overloaded_error: overloaded',
  ],
])('an error in the stream of %s ends the run, even if nobody reads on', async (_title, path, response, error) => {
  const recorder = record();
  onTestFinished(recordFetch());
  const body = { model: 'small', messages: question, max_tokens: 9, contents: [{ parts: [{ text: 'What is tea?' }] }] };
  const url = (await serveWire({ ...response, staysOpen: true })) + path;
  const reader = (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).body?.getReader();
  for (let text = ''; !text.includes('overloaded'); ) text += new TextDecoder().decode((await reader?.read())?.value);
  expect(onlyRun(recorder.runs)).toMatchObject({ error, end_time: expect.any(String) });
});

const vertex = 'https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers';
test.each<[url: string, name: string, provider: string, model: string]>([
  [
    `${vertex}/google/models/gemini-2.5-pro:generateContent`,
    'gemini.generateContent',
    'google_vertexai',
    'gemini-2.5-pro',
  ],
  [
    `${vertex}/anthropic/models/claude-opus-4-8:streamRawPredict`,
    'anthropic.messages',
    'google_vertexai',
    'claude-opus-4-8',
  ],
  ['https://shop.openai.azure.com/openai/v1/responses', 'openai.responses', 'azure', 'small'],
  ['https://api.groq.com/openai/v1/chat/completions', 'openai.chat.completions', 'groq', 'small'],
  ['https://api.mistral.ai/v1/agents/completions', 'openai.chat.completions', 'mistralai', 'small'],
  ['https://openrouter.ai/api/v1/embeddings', 'openai.embeddings', 'openrouter', 'small'],
  ['https://api.moonshot.cn/v1/chat/completions', 'openai.chat.completions', 'moonshot', 'small'],
  ['https://open.bigmodel.cn/api/paas/v4/chat/completions', 'openai.chat.completions', 'zhipuai', 'small'],
  [
    'https://mine.aws.endpoints.huggingface.cloud/v1/chat/completions',
    'openai.chat.completions',
    'huggingface',
    'small',
  ],
  ['http://localhost:11434/v1/chat/completions', 'openai.chat.completions', 'ollama', 'small'],
  ['http://litellm.shop.test/v1/messages', 'anthropic.messages', 'anthropic', 'small'],
])('a request to %s is a call of %s', async (url, name, provider, model) => {
  vi.stubGlobal('fetch', async () => Response.json({}));
  onTestFinished(() => void vi.unstubAllGlobals());
  const recorder = record();
  onTestFinished(recordFetch());
  const input = { messages: question, max_tokens: 9, input: 'tea', contents: [] };
  const body = JSON.stringify(model === 'small' ? { model, ...input } : input);
  await (await fetch(url, { method: 'POST', body })).json();
  expect(onlyRun(recorder.runs)).toMatchObject({ name, extra: metadata(provider, model) });
});

test('an interaction of an agent fails if its status says so, and is not recorded in the background', async () => {
  vi.stubGlobal('fetch', async () => Response.json({ status: 'failed', errors: [{ message: 'overloaded' }] }));
  onTestFinished(() => void vi.unstubAllGlobals());
  const recorder = record();
  onTestFinished(recordFetch());
  for (const background of [true, false]) {
    const body = JSON.stringify({ agent: 'deep-research', input: 'tea', background });
    await (
      await fetch('https://generativelanguage.googleapis.com/v1beta/interactions', { method: 'POST', body })
    ).json();
  }
  const extra = metadata('google_genai', 'deep-research');
  expect(onlyRun(recorder.runs)).toMatchObject({
    error: 'overloaded',
    inputs: { messages: [{ content: 'tea' }] },
    extra,
  });
});
