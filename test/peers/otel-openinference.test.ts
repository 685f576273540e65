// The expected runs are written by hand, from the program and
// https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
import { beforeAll, expect, it } from 'vitest';
import { type DrawnRun, drawn, inOrder, printedBy } from './otel-runs.ts';

let agent: DrawnRun | undefined;
let ask: DrawnRun | undefined;
beforeAll(async () => {
  const runs = drawn(await printedBy('otel-openinference-program.mjs', []));
  expect(runs.map(({ name }) => name)).toEqual(['agent', 'ask']);
  [agent, ask] = runs;
});

const kind = (name: string) => ({ 'openinference.span.kind': name });

it("the spans of OpenInference's instrumentation of LangChain are a tree with the prompt, model, tool and retriever of the chain", () => {
  const thread = { thread_id: 't1', session_id: 't1' };
  const [prompt, chat, lambda, parser] = ask?.below ?? [];

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

it("the spans of OpenInference's helpers are the wrapped functions, with session, user, tags and metadata of their context", () => {
  const tags = ['a', 'b'];
  const about = (name: string) => ({
    thread_id: 's1',
    session_id: 's1',
    user_id: 'u1',
    topic: 'weather',
    ...kind(name),
  });
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3, input_token_details: { cache_read: 1 } };
  expect([agent]).toEqual(
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
