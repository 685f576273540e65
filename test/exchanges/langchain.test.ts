// Models of LangChain: ChatOpenAI, and models that pass on the usage of a service in the metadata of the response.
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { expect, test } from 'vitest';
import { RunspanCallbackHandler } from '#src/integrations/langchain/handler.ts';
import { messagesOfInputs, messagesOfOutputs } from '#src/services/conversation.ts';
import { record } from '../instrument/recorder.ts';
import { chunksOf, onlyRun } from '../integrations/local-openai.ts';
import { asked, PIXEL } from './exchange.ts';
import { linesOf, serve } from './run.ts';
import { answeredByOpenAI, counted } from './table.ts';

const callbacks = [new RunspanCallbackHandler()];
const url = `data:image/png;base64,${PIXEL}`;
const tools = [{ type: 'function' as const, function: { name: 'find', parameters: {} } }];
const messages = [
  new SystemMessage('Be kind.'),
  new HumanMessage({
    content: [
      { type: 'text', text: 'See this.' },
      { type: 'image_url', image_url: { url } },
    ],
  }),
  new AIMessage({ content: '', tool_calls: [{ id: 'call_1', name: 'find', args: { q: 1 } }] }),
  new ToolMessage({ tool_call_id: 'call_1', content: '{"found":2}' }),
];

test.each(answeredByOpenAI)('$title is recorded from ChatOpenAI', async ({ exchange, isStreamed }) => {
  await serve(exchange, isStreamed);
  const { name, usage, said } = exchange;
  const configuration = { baseURL: exchange.url.replace(/\/(chat\/completions|responses)$/, '') };
  const useResponsesApi = name === 'openai.responses';
  const chat = new ChatOpenAI({
    model: 'small',
    apiKey: 'a-secret',
    maxRetries: 0,
    temperature: 0.2,
    maxTokens: 50,
    configuration,
    useResponsesApi,
  });
  const options = { callbacks, tools, stop: ['.'] };
  const recorder = record();
  if (isStreamed) await chunksOf(await chat.stream(messages, options));
  else await chat.invoke(messages, options);
  const run = onlyRun(recorder.runs);
  expect(run).toMatchObject({ name: 'ChatOpenAI', run_type: 'llm', end_time: expect.any(String) });
  expect(run.events?.map((event) => event.name)).toEqual(isStreamed ? ['new_token'] : undefined);
  expect(run.extra?.metadata).toMatchObject({
    ...{ ls_provider: 'openai', ls_model_type: 'chat', ls_model_name: 'small', ls_temperature: 0.2, ls_max_tokens: 50 },
    ls_stop: ['.'],
    ls_invocation_params: { model: 'small', tools: [{ type: 'function' }] },
    response_model: 'small-2026',
  });
  expect(run.extra?.metadata?.usage_metadata).toEqual(usage);
  expect(run.outputs?.usage_metadata).toEqual(usage);
  expect(linesOf(messagesOfInputs(run.inputs))).toEqual(asked());
  expect(linesOf(messagesOfOutputs(run.outputs))).toEqual(said);
});

test.each(counted)('the usage of $title is that of the service', async ({ name, counts, response, usage }) => {
  const [handler] = callbacks as [RunspanCallbackHandler];
  const { service_tier } = response as { service_tier?: string };
  // ChatOllama has the counts beside the other fields.
  const response_metadata = name === 'ollama.chat' ? { ...counts } : { usage: counts, service_tier };
  const recorder = record();
  handler.handleChatModelStart({}, [[]], 'id');
  handler.handleLLMEnd({ generations: [[{ message: new AIMessage({ content: 'Tea.', response_metadata }) }]] }, 'id');
  expect(onlyRun(recorder.runs).extra?.metadata?.usage_metadata).toEqual(usage);
});
