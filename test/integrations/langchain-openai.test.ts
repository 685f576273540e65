// Calls of LangChain's ChatOpenAI that the table of exchanges does not have. The answers are those of test/support/local-model, which repeats
// the question and counts words as tokens.
import '@langchain/core/context';
import { AIMessage, HumanMessage, SystemMessage } from '@langchain/core/messages';
import { ChatPromptTemplate } from '@langchain/core/prompts';
import { ChatOpenAI } from '@langchain/openai';
import { expect, onTestFinished, test } from 'vitest';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/integrations/langchain/handler.ts';
import type { RunRecord } from '#src/run/record.ts';
import { record } from '../instrument/recorder.ts';
import { bareClient, chunksOf, localModel } from './local-openai.ts';

const callbacks = [new RunspanCallbackHandler()];

async function start(options: ConstructorParameters<typeof ChatOpenAI>[0] = {}) {
  const model = await localModel();
  const configuration = { baseURL: `${model.url}/v1` };
  const chat = new ChatOpenAI({ model: 'small', apiKey: 'a-secret', maxRetries: 0, ...options, configuration });
  return { chat, model, recorder: record() };
}

const messages = [new SystemMessage('Be brief'), new HumanMessage({ content: 'What is tea?', name: 'ada' })];
const answer = { role: 'assistant', content: 'You said: What is tea?', finish_reason: 'stop' };
type Row = [string, ConstructorParameters<typeof ChatOpenAI>[0], (chat: ChatOpenAI) => Promise<unknown>, object];

test.each<Row>([
  [
    'that LangChain streams, because another handler asks for it',
    {},
    (chat) => {
      const streaming = { name: 'streaming', lc_prefer_streaming: true, handleLLMNewToken() {} };
      return chat.invoke(messages, { callbacks: [...callbacks, streaming as never] });
    },
    {
      outputs: { messages: [answer], usage_metadata: { input_tokens: 5, output_tokens: 5 } },
      events: [{ name: 'new_token' }],
      extra: { metadata: { response_model: 'small-2026-01-01', finish_reasons: ['stop'] } },
    },
  ],
  [
    'with several answers and one count of tokens',
    { n: 2 },
    (chat) => chat.invoke(messages, { callbacks }),
    {
      outputs: {
        messages: [answer, { ...answer, content: `${answer.content} (2)` }],
        usage_metadata: { input_tokens: 5 },
      },
    },
  ],
  [
    'that fails',
    { model: 'fail-400' },
    (chat) => expect(chat.invoke(messages, { callbacks })).rejects.toThrow('400'),
    { error: expect.stringMatching(/400/) },
  ],
])('a call of ChatOpenAI is recorded %s', async (_, options, call, expected) => {
  const { chat, recorder, model } = await start(options);
  await call(chat);
  expect(recorder.runs).toMatchObject([{ ...expected, end_time: expect.any(String) }]);
  expect(JSON.stringify(recorder.runs)).not.toContain('a-secret');
  expect(model.requests).toHaveLength(1);
});

test('a streamed call has no token counts if the service reports none', async () => {
  const { chat, recorder } = await start({ streamUsage: false });
  for await (const _ of await chat.stream(messages, { callbacks }));
  const [run] = recorder.runs as [RunRecord];
  for (const fields of [run.outputs, run.extra?.metadata]) expect(fields).not.toHaveProperty('usage_metadata');
});

test('a streamed chain whose time is over has failed, and so has its model call', async () => {
  const { chat, recorder } = await start({ model: 'hang-mid-stream' });
  const chain = ChatPromptTemplate.fromTemplate('{text}').pipe(chat);
  const reading = chain.stream({ text: 'What is tea?' }, { callbacks, signal: AbortSignal.timeout(200) });
  await expect(reading.then(chunksOf)).rejects.toThrow('timeout');
  const ends = () => recorder.runs.map(({ error, extra }) => [error !== undefined, extra?.runspan_end_reason]);
  await expect.poll(ends).toEqual([true, false, true].map((hasFailed) => [hasFailed, undefined]));
});

test('the handler does not change the request', async () => {
  const { chat, model } = await start();
  const history = [new HumanMessage('a'), new AIMessage('b'), new HumanMessage('c')];
  for (const config of [{}, { callbacks }]) await chat.invoke(history, config);
  const [bare, traced] = model.requests.map(({ body }) => body);
  expect(traced).toEqual(bare);
});

test.each([
  ['equal', 'What is tea?'],
  ['different', 'What is coffee?'],
])('the recorder at `fetch` records a direct call with an %s question beside a parallel step', async (_, content) => {
  const { chat, model, recorder } = await start();
  onTestFinished(recordFetch());
  const direct = bareClient(model);
  const question = { model: 'small', messages: [{ role: 'user' as const, content }] };
  await Promise.all([
    direct.chat.completions.create(question),
    chat.invoke('What is tea?', { callbacks }),
    direct.chat.completions.create(question),
  ]);
  const said = recorder.runs.map(({ name, inputs }) => `${name}: ${JSON.stringify(inputs?.messages)}`).sort();
  const asked = (text: string) => JSON.stringify([{ role: 'user', content: text }]);
  const calls = [1, 2].map(() => `openai.chat.completions: ${asked(content)}`);
  expect(said).toEqual([`ChatOpenAI: ${asked('What is tea?')}`, ...calls]);
});
