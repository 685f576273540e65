import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LocalModel, startLocalModel } from '../support/local-model/server.js';
import { type DrawnRun, drawn, inOrder, printedBy } from './otel-runs.ts';

// The expected runs are written by hand, from the requests of the program, the answers of the local model, and
// https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md

let model: LocalModel;
beforeAll(async () => {
  model = await startLocalModel();
});
afterAll(() => model.close());

const recorded = async (what: string): Promise<DrawnRun[]> =>
  drawn(await printedBy('otel-openinference-program.mjs', [what, `${model.url}/v1`]));

const kind = (name: string) => ({ 'openinference.span.kind': name });

describe("the spans of OpenInference's instrumentation of openai", () => {
  it('are calls of a model with messages, tools and tokens, streamed or not', async () => {
    const tool = {
      type: 'function',
      function: {
        name: 'weather',
        description: 'Tells it.',
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
      },
    };
    const question = [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Cork' },
          { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
        ],
      },
    ];
    // The local model converts the parts of a question to text.
    const args = '{"city":"[object Object],[object Object]"}';
    const call = {
      role: 'assistant',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: args } }],
    };
    const usage = {
      input_tokens: 3,
      output_tokens: 3,
      total_tokens: 6,
      input_token_details: { cache_read: 2, audio: 0 },
      output_token_details: { reasoning: 0, audio: 0 },
    };
    expect(await recorded('chat')).toEqual(
      inOrder([
        {
          name: 'OpenAI Chat Completions',
          type: 'llm',
          inputs: { messages: question },
          outputs: { messages: [{ ...call, finish_reason: 'tool_calls' }], usage_metadata: usage },
          metadata: {
            ls_provider: 'openai',
            ls_model_name: 'gpt-4o',
            response_model: 'gpt-4o-2026-01-01',
            response_id: 'chatcmpl-local',
            ls_temperature: 0.5,
            ls_invocation_params: { model: 'gpt-4o', temperature: 0.5, tools: [tool] },
            finish_reasons: ['tool_calls'],
            usage_metadata: usage,
            ...kind('LLM'),
          },
        },
        {
          name: 'OpenAI Chat Completions',
          type: 'llm',
          inputs: { messages: [...question, call, { role: 'tool', tool_call_id: 'call_1', content: 'rain' }] },
          outputs: { messages: [{ role: 'assistant', content: 'The tools say: rain', finish_reason: 'stop' }] },
          // The instrumentation reads neither tokens nor the model that answers from a stream.
          metadata: {
            ls_provider: 'openai',
            ls_model_name: 'gpt-4o',
            ls_temperature: 0.5,
            ls_invocation_params: {
              model: 'gpt-4o',
              temperature: 0.5,
              tools: [tool],
              stream: true,
              stream_options: { include_usage: true },
            },
            finish_reasons: ['stop'],
            ...kind('LLM'),
          },
        },
      ]),
    );
  });

  it('are responses with reasoning, streamed or not', async () => {
    const usage = (input: number, cached: number, output: number, reasoning: number) => ({
      input_tokens: input,
      output_tokens: output,
      total_tokens: input + output,
      input_token_details: { cache_read: cached },
      output_token_details: { reasoning },
    });
    const metadata = {
      ls_provider: 'openai',
      ls_model_name: 'gpt-5',
      response_model: 'gpt-5-2026-01-01',
      response_id: 'resp_local',
      ...kind('LLM'),
    };
    const says = (text: string) => ({ role: 'assistant', content: [{ type: 'output_text', text }] });
    expect(await recorded('responses')).toEqual(
      inOrder([
        {
          name: 'OpenAI Responses',
          type: 'llm',
          inputs: {
            messages: [
              { role: 'system', content: 'Be brief.' },
              { role: 'user', content: 'Hello there' },
            ],
          },
          outputs: {
            messages: [
              { role: 'assistant', content: [{ type: 'reasoning', reasoning: 'Let me think.' }] },
              says('You said: Hello there'),
            ],
            usage_metadata: usage(4, 2, 7, 3),
          },
          metadata: {
            ...metadata,
            ls_invocation_params: { model: 'gpt-5', instructions: 'Be brief.', reasoning: { effort: 'low' } },
            usage_metadata: usage(4, 2, 7, 3),
          },
        },
        {
          name: 'OpenAI Responses',
          type: 'llm',
          inputs: { messages: [{ role: 'user', content: 'You said: Hello there' }] },
          outputs: {
            messages: [says('You said: You said: Hello there')],
            usage_metadata: usage(4, 0, 6, 0),
          },
          metadata: {
            ...metadata,
            ls_invocation_params: { model: 'gpt-5', stream: true },
            usage_metadata: usage(4, 0, 6, 0),
          },
        },
      ]),
    );
  });

  it('are embeddings with texts, without vectors', async () => {
    expect(await recorded('embeddings')).toEqual(
      inOrder([
        {
          name: 'OpenAI Embeddings',
          type: 'embedding',
          inputs: { texts: ['one two', 'three'] },
          outputs: { embeddings: [{ dimensions: 4 }, { dimensions: 4 }] },
          metadata: { ls_model_name: 'text-embedding-3-small', ls_provider: 'openai', ...kind('EMBEDDING') },
        },
      ]),
    );
  });

  // The instrumentation never ends the spans of failed calls. It sets attributes after the start of a span.
  it('of failed calls are open runs with the inputs of the calls', async () => {
    const inputs = { messages: [{ role: 'user', content: 'Hi' }] };
    expect(await recorded('failure')).toEqual(
      inOrder([
        { name: 'OpenAI Responses', type: 'llm', isOpen: true, inputs },
        { name: 'OpenAI Chat Completions', type: 'llm', isOpen: true, inputs },
      ]),
    );
  });

  it('do not contain data that their own options remove', async () => {
    const [run] = await recorded('hidden');
    expect(run).toMatchObject({
      type: 'llm',
      inputs: { messages: [{ role: 'user', content: [{ type: 'text', text: '__REDACTED__' }, { type: 'image' }] }] },
      outputs: { output: '__REDACTED__' },
    });
    expect(JSON.stringify(run)).not.toMatch(/secret/);
  });
});

describe("the spans of OpenInference's instrumentation of LangChain", () => {
  it('are a tree with the prompt, model, tool and retriever of the chain', async () => {
    const thread = { thread_id: 't1', session_id: 't1' };
    const [ask, ...more] = await recorded('langchain');
    const [prompt, chat, lambda, parser] = ask?.below ?? [];

    expect(more).toEqual([]);
    expect(ask).toMatchObject({
      name: 'ask',
      type: 'chain',
      inputs: { input: 'cats?' },
      outputs: { output: 'Meow' },
      metadata: { ...thread, ...kind('CHAIN') },
    });
    expect(lambda).toEqual({
      name: 'RunnableLambda',
      type: 'chain',
      inputs: { input: 'cats?' },
      outputs: { question: 'cats?', context: 'A cat.' },
      metadata: { ...thread, ...kind('CHAIN') },
      below: [
        {
          name: 'FakeRetriever',
          type: 'retriever',
          inputs: { input: 'cats?' },
          outputs: { documents: [{ page_content: 'A cat.', type: 'Document', metadata: { page: 3 } }] },
          metadata: { ...thread, ...kind('RETRIEVER') },
        },
        {
          name: 'purr',
          type: 'tool',
          inputs: { times: 2 },
          outputs: { output: 'purr purr' },
          metadata: { ...thread, versions: { '@langchain/core': '1.2.13' }, ...kind('TOOL') },
        },
      ],
    });
    // The outputs are messages in the form of LangChain.
    expect(prompt).toMatchObject({
      name: 'ChatPromptTemplate',
      type: 'prompt',
      inputs: { question: 'cats?', context: 'A cat.' },
      metadata: { ...thread, template: 'Use: {context}', ...kind('PROMPT') },
    });
    expect(prompt?.metadata).not.toHaveProperty(['llm.prompt_template.variables']);
    expect(chat).toMatchObject({
      name: 'FakeListChatModel',
      type: 'llm',
      inputs: {
        messages: [
          { role: 'system', content: 'Use: A cat.' },
          { role: 'user', content: 'cats?' },
        ],
      },
      outputs: { messages: [{ role: 'assistant', content: 'Meow' }] },
      metadata: { ...thread, ls_model_type: 'chat', ...kind('LLM') },
    });
    expect(parser).toMatchObject({ name: 'StrOutputParser', type: 'chain', outputs: { output: 'Meow' } });
  });
});

describe("the spans of OpenInference's helpers", () => {
  it('are the wrapped functions, with session, user, tags and metadata of their context', async () => {
    const tags = ['a', 'b'];
    const about = (name: string) => ({
      thread_id: 's1',
      session_id: 's1',
      user_id: 'u1',
      topic: 'weather',
      ...kind(name),
    });
    const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3, input_token_details: { cache_read: 1 } };
    expect(await recorded('helpers')).toEqual(
      inOrder([
        {
          name: 'agent',
          type: 'chain',
          inputs: { input: 'Rain?' },
          outputs: { output: 'Rain.' },
          tags,
          metadata: about('AGENT'),
          below: [
            {
              name: 'answer',
              type: 'chain',
              inputs: { question: 'Rain?' },
              outputs: { output: 'Rain.' },
              tags,
              metadata: about('CHAIN'),
              below: [
                {
                  name: 'search',
                  type: 'retriever',
                  inputs: { input: 'Rain?' },
                  outputs: { documents: [{ page_content: 'Rain?', type: 'Document', metadata: { score: 1 } }] },
                  tags,
                  metadata: about('RETRIEVER'),
                },
                {
                  name: 'weather',
                  type: 'tool',
                  inputs: { input: 'Cork' },
                  outputs: { city: 'Cork', rain: true },
                  tags,
                  metadata: about('TOOL'),
                },
                {
                  name: 'model',
                  type: 'llm',
                  inputs: { messages: [{ role: 'user', content: 'Rain?' }] },
                  outputs: { messages: [{ role: 'assistant', content: 'Rain.' }], usage_metadata: usage },
                  tags,
                  metadata: {
                    ...about('LLM'),
                    ls_model_name: 'gpt-4o',
                    ls_provider: 'azure',
                    ls_temperature: 0,
                    ls_invocation_params: { temperature: 0 },
                    usage_metadata: usage,
                  },
                },
                {
                  name: 'judge',
                  type: 'chain',
                  error: 'TypeError: no verdict',
                  tags,
                  metadata: about('EVALUATOR'),
                },
              ],
            },
          ],
        },
      ]),
    );
  });
});
