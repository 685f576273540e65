// ChatOpenAI of LangChain against a local server, and the runs that its calls become.
import '@langchain/core/context';
import { AIMessage, HumanMessage, SystemMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { RunspanCallbackHandler } from '../../src/integrations/langchain/handler.ts';
import type { RunRecord } from '../../src/run/record.ts';
import { record } from '../instrument/recorder.ts';
import { ingestServer, type Reply } from '../support/ingest-server.ts';

const callbacks = [new RunspanCallbackHandler()];

/** The answers of a server to consecutive requests: JSON, the chunks of a stream, or a callback instead of an answer. */
type ServerAnswer = { status?: number; json: unknown } | { chunks: readonly unknown[] } | (() => void);

async function start(answers: readonly ServerAnswer[], options: object = {}) {
  const server = await ingestServer((_, at) => replyOf(answers[Math.min(at, answers.length - 1)]));
  onTestFinished(server.close);
  const chat = new ChatOpenAI({
    model: 'small',
    apiKey: 'a-secret',
    temperature: 0.2,
    maxTokens: 50,
    maxRetries: 0,
    ...options,
    configuration: { baseURL: `${server.url}/v1` },
  });
  return { chat, recorder: record(), requests: () => server.received.map(({ body }) => JSON.parse(String(body))) };
}

function replyOf(answer: ServerAnswer = { status: 500, json: {} }): Reply {
  if (typeof answer === 'function') {
    answer();
    return 'hold';
  }
  if ('json' in answer) return { status: answer.status ?? 200, body: JSON.stringify(answer.json) };
  const events = [...answer.chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'];
  const headers = { 'content-type': 'text/event-stream' };
  return { status: 200, headers, body: events.map((data) => `data: ${data}\n\n`).join('') };
}

const usage = {
  prompt_tokens: 12,
  completion_tokens: 7,
  total_tokens: 19,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 3 },
};
const usage_metadata = {
  input_tokens: 12,
  output_tokens: 7,
  total_tokens: 19,
  input_token_details: { cache_read: 4 },
  output_token_details: { reasoning: 3 },
};
const shared = { id: 'chat-1', created: 0, model: 'small-2025' };
const completion = (message: object, finish_reason = 'stop') => ({
  ...shared,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  usage,
});
const chunk = (delta: object, finish_reason: string | null = null) => ({
  ...shared,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason }],
});
const textChunks = [
  ...[{ role: 'assistant', content: '' }, { content: 'Hel' }, { content: 'lo' }].map((delta) => chunk(delta)),
  chunk({}, 'stop'),
  { ...chunk({}), choices: [], usage },
];
const addCall = { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":1,"b":2}' } };
const part = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] });
const callChunks = [
  chunk({ role: 'assistant', content: null }),
  part({ ...addCall, function: { name: 'add', arguments: '' } }),
  ...['{"a":1,', '"b":2}'].map((args) => part({ function: { arguments: args } })),
  chunk({}, 'tool_calls'),
];
const hello = { role: 'assistant', content: 'Hello', finish_reason: 'stop', id: 'chat-1' };
const twoChoices = [
  ...completion({ content: 'a' }).choices,
  { index: 1, message: { role: 'assistant', content: 'b' }, finish_reason: 'length' },
];

const invoke = (chat: ChatOpenAI) => chat.invoke('Hi', { callbacks });
const streamAll = async (chat: ChatOpenAI) => {
  const contents: unknown[] = [];
  for await (const { content } of await chat.stream('Hi', { callbacks })) contents.push(content);
  return contents.join('');
};

describe('a call of ChatOpenAI', () => {
  test.each<[string, ServerAnswer, (chat: ChatOpenAI) => Promise<unknown>, object, object?]>([
    [
      'with messages, parameters and token counts',
      { json: completion({ content: 'Hello' }) },
      (chat) => {
        const messages = [new SystemMessage('Be kind.'), new HumanMessage({ content: 'Hi', name: 'ada' })];
        return chat.invoke(messages, { callbacks, stop: ['\n'] });
      },
      {
        name: 'ChatOpenAI',
        run_type: 'llm',
        inputs: {
          messages: [
            { role: 'system', content: 'Be kind.' },
            { role: 'user', content: 'Hi', name: 'ada' },
          ],
        },
        outputs: { messages: [hello], usage_metadata },
        extra: {
          metadata: {
            ls_provider: 'openai',
            ls_model_name: 'small',
            ls_model_type: 'chat',
            ls_temperature: 0.2,
            ls_max_tokens: 50,
            ls_stop: ['\n'],
            ls_invocation_params: { model: 'small', temperature: 0.2, stop: ['\n'] },
            usage_metadata,
            response_model: 'small-2025',
            finish_reasons: ['stop'],
          },
        },
      },
    ],
    [
      'that is streamed, with an event for the first token',
      { chunks: textChunks },
      async (chat) => expect(await streamAll(chat)).toBe('Hello'),
      {
        outputs: { messages: [hello], usage_metadata },
        events: [{ name: 'new_token' }],
        extra: { metadata: { usage_metadata, response_model: 'small-2025' } },
      },
    ],
    [
      'with several answers and one count of tokens',
      { json: { ...completion({}), choices: twoChoices } },
      invoke,
      {
        outputs: {
          messages: [
            { content: 'a', finish_reason: 'stop' },
            { content: 'b', finish_reason: 'length' },
          ],
          usage_metadata,
        },
      },
      { n: 2 },
    ],
    [
      'that streams a tool call, with an event for its first part',
      { chunks: callChunks },
      streamAll,
      { outputs: { messages: [{ tool_calls: [addCall] }] }, events: [{ name: 'new_token' }] },
    ],
    [
      'with reasoning',
      { json: completion({ content: 'ok', reasoning_content: 'hm' }) },
      invoke,
      { outputs: { messages: [{ content: 'ok', reasoning: 'hm' }] } },
    ],
    [
      'that fails',
      { status: 429, json: { error: { message: 'slow down' } } },
      (chat) => expect(invoke(chat)).rejects.toThrow('slow down'),
      { error: expect.stringMatching(/slow down/) },
    ],
  ])('is recorded %s', async (_, answer, call, expected, options) => {
    const { chat, recorder, requests } = await start([answer], options);
    await call(chat);
    expect(recorder.runs).toMatchObject([{ ...expected, end_time: expect.any(String) }]);
    expect(JSON.stringify(recorder.runs)).not.toContain('a-secret');
    expect(requests()).toHaveLength(1);
  });

  test('is recorded without token counts if the service reports none', async () => {
    const { usage: _, ...silent } = completion({ content: 'a' });
    const { chat, recorder } = await start([{ json: silent }]);
    await invoke(chat);
    const [run] = recorder.runs as [RunRecord];
    for (const fields of [run.outputs, run.extra?.metadata]) expect(fields).not.toHaveProperty('usage_metadata');
  });

  test('is recorded with tools, their calls and their results', async () => {
    const { chat, recorder } = await start([
      { json: completion({ content: null, tool_calls: [addCall] }, 'tool_calls') },
      { json: completion({ content: '3' }) },
    ]);
    const add = tool(async ({ a, b }: { a: number; b: number }) => `${a + b}`, {
      name: 'add',
      description: 'adds',
      schema: z.object({ a: z.number(), b: z.number() }),
    });
    const model = chat.bindTools([add]);
    const asked = await model.invoke([new HumanMessage('1+2?')], { callbacks });
    const answered = await add.invoke(asked.tool_calls?.[0] as never, { callbacks });
    await model.invoke([new HumanMessage('1+2?'), asked, answered as never], { callbacks });
    const called = { role: 'assistant', tool_calls: [addCall] };
    const tools = [{ type: 'function', function: { name: 'add' } }];
    expect(recorder.runs).toMatchObject([
      {
        outputs: { messages: [{ ...called, finish_reason: 'tool_calls' }] },
        extra: { metadata: { ls_invocation_params: { tools } } },
      },
      { name: 'add', inputs: { a: 1, b: 2 } },
      { inputs: { messages: [{ role: 'user' }, called, { role: 'tool', content: '3', tool_call_id: 'call_1' }] } },
    ]);
  });

  test('fails if it is aborted', async () => {
    const stopped = new AbortController();
    const { chat, recorder } = await start([() => stopped.abort()]);
    await expect(chat.invoke('Hi', { callbacks, signal: stopped.signal })).rejects.toThrow(/abort/i);
    await vi.waitFor(() => expect(recorder.runs[0]?.error).toMatch(/abort/i));
  });

  test('sends the same request as without the handler', async () => {
    const { chat, requests } = await start([{ json: completion({ content: 'Hello' }) }]);
    const history = [new HumanMessage('a'), new AIMessage('b'), new HumanMessage('c')];
    for (const config of [{}, { callbacks }]) await chat.invoke(history, config);
    const [bare, ...traced] = requests();
    expect(traced).toEqual([bare]);
  });
});
