import '@langchain/core/context';
import { AIMessage, HumanMessage, SystemMessage, type ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { RunspanCallbackHandler } from '../../src/integrations/langchain/handler.ts';
import { record } from '../instrument/recorder.ts';
import { chatServer } from './langchain-server.ts';

const callbacks = [new RunspanCallbackHandler()];

const chat = (baseURL: string, more: object = {}) =>
  new ChatOpenAI({
    model: 'small',
    apiKey: 'a-secret',
    temperature: 0.2,
    maxTokens: 50,
    maxRetries: 0,
    ...more,
    configuration: { baseURL },
  });

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 7,
  total_tokens: 19,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 3 },
};
const COUNTS = {
  input_tokens: 12,
  output_tokens: 7,
  total_tokens: 19,
  input_token_details: { cache_read: 4 },
  output_token_details: { reasoning: 3 },
};
const completion = (message: object, finish_reason = 'stop') => ({
  id: 'chat-1',
  object: 'chat.completion',
  created: 0,
  model: 'small-2025',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  usage: USAGE,
});
const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: 'chat-1',
  object: 'chat.completion.chunk',
  created: 0,
  model: 'small-2025',
  choices: [{ index: 0, delta, finish_reason }],
});
const STREAM = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Hel' }),
  chunk({ content: 'lo' }),
  chunk({}, 'stop'),
  { ...chunk({}), choices: [], usage: USAGE },
];

describe('ChatOpenAI', () => {
  it('is recorded with messages, answer, parameters and all counts of tokens', async () => {
    const recorder = record();
    const { url } = await chatServer({ json: completion({ content: 'Hello' }) });
    const messages = [new SystemMessage('Be kind.'), new HumanMessage({ content: 'Hi', name: 'ada' })];
    await chat(url).invoke(messages, { callbacks, stop: ['\n'] });

    const [run] = recorder.runs;
    expect(run).toMatchObject({ name: 'ChatOpenAI', run_type: 'llm' });
    expect(run?.inputs).toEqual({
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi', name: 'ada' },
      ],
    });
    expect(run?.outputs).toEqual({
      messages: [{ role: 'assistant', content: 'Hello', finish_reason: 'stop', id: 'chat-1' }],
      usage_metadata: COUNTS,
    });
    expect(run?.extra?.metadata).toMatchObject({
      ls_provider: 'openai',
      ls_model_name: 'small',
      ls_model_type: 'chat',
      ls_temperature: 0.2,
      ls_max_tokens: 50,
      ls_stop: ['\n'],
      ls_invocation_params: { model: 'small', temperature: 0.2, stop: ['\n'] },
      usage_metadata: COUNTS,
      response_model: 'small-2025',
      finish_reasons: ['stop'],
    });
    expect(JSON.stringify(run)).not.toContain('a-secret');
  });

  it('is recorded the same when it streams, with the moment of the first token', async () => {
    const recorder = record();
    const { url } = await chatServer({ chunks: STREAM });
    const chunks: unknown[] = [];
    for await (const { content } of await chat(url).stream('Hi', { callbacks })) chunks.push(content);

    expect(chunks.join('')).toBe('Hello');
    const [run] = recorder.runs;
    expect(run?.outputs).toEqual({
      messages: [{ role: 'assistant', content: 'Hello', finish_reason: 'stop', id: 'chat-1' }],
      usage_metadata: COUNTS,
    });
    expect(run?.extra?.metadata).toMatchObject({ usage_metadata: COUNTS, response_model: 'small-2025' });
    expect(run?.events?.map(({ name }) => name)).toEqual(['new_token']);
  });

  it('counts the tokens of several answers to one question once', async () => {
    const recorder = record();
    const one = completion({ content: 'a' });
    const both = [...one.choices, { index: 1, message: { role: 'assistant', content: 'b' }, finish_reason: 'length' }];
    const { url } = await chatServer({ json: { ...one, choices: both } });
    await chat(url, { n: 2 }).invoke('Hi', { callbacks });
    expect(recorder.runs[0]?.outputs).toMatchObject({
      messages: [
        { content: 'a', finish_reason: 'stop' },
        { content: 'b', finish_reason: 'length' },
      ],
      usage_metadata: COUNTS,
    });
  });

  it('has no counts where the service gives none', async () => {
    const recorder = record();
    const { usage: _, ...silent } = completion({ content: 'a' });
    const { url } = await chatServer({ json: silent });
    await chat(url).invoke('Hi', { callbacks });
    expect(recorder.runs[0]?.outputs).not.toHaveProperty('usage_metadata');
    expect(recorder.runs[0]?.extra?.metadata).not.toHaveProperty('usage_metadata');
  });

  it('tells calls of tools, and their answers, as models write and read them', async () => {
    const recorder = record();
    const call = { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":1,"b":2}' } };
    const { url } = await chatServer(
      { json: completion({ content: null, tool_calls: [call] }, 'tool_calls') },
      { json: completion({ content: '3' }) },
    );
    const add = tool(async ({ a, b }: { a: number; b: number }) => `${a + b}`, {
      name: 'add',
      description: 'adds',
      schema: z.object({ a: z.number(), b: z.number() }),
    });
    const model = chat(url).bindTools([add]);
    const asked = await model.invoke([new HumanMessage('1+2?')], { callbacks });
    const [given] = asked.tool_calls ?? [];
    const answered: ToolMessage = await add.invoke(given as never, { callbacks });
    await model.invoke([new HumanMessage('1+2?'), asked, answered], { callbacks });

    const [first, called, second] = recorder.runs;
    expect(first?.outputs).toMatchObject({
      messages: [{ role: 'assistant', tool_calls: [call], finish_reason: 'tool_calls' }],
    });
    expect(first?.extra?.metadata).toMatchObject({
      ls_invocation_params: { tools: [{ type: 'function', function: { name: 'add' } }] },
    });
    expect(called).toMatchObject({ name: 'add', inputs: { a: 1, b: 2 } });
    expect(second?.inputs).toMatchObject({
      messages: [
        { role: 'user', content: '1+2?' },
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', content: '3', tool_call_id: 'call_1', name: 'add' },
      ],
    });
  });

  it('that streams a call of a tool has its parts together, and the first of them as the first token', async () => {
    const recorder = record();
    const part = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] });
    const { url } = await chatServer({
      chunks: [
        chunk({ role: 'assistant', content: null }),
        part({ id: 'call_1', type: 'function', function: { name: 'add', arguments: '' } }),
        part({ function: { arguments: '{"a":' } }),
        part({ function: { arguments: '1}' } }),
        chunk({}, 'tool_calls'),
      ],
    });
    for await (const _ of await chat(url).stream('Hi', { callbacks }));
    const [run] = recorder.runs;
    expect(run?.outputs?.messages).toMatchObject([
      { tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }] },
    ]);
    expect(run?.events).toHaveLength(1);
  });

  it('keeps reasoning apart from the answer', async () => {
    const recorder = record();
    const { url } = await chatServer({ json: completion({ content: 'ok', reasoning_content: 'hm' }) });
    await chat(url).invoke('Hi', { callbacks });
    expect(recorder.runs[0]?.outputs?.messages).toMatchObject([{ content: 'ok', reasoning: 'hm' }]);
  });

  it('fails with what the service says', async () => {
    const recorder = record();
    const { url } = await chatServer({ status: 429, json: { error: { message: 'slow down' } } });
    await expect(chat(url).invoke('Hi', { callbacks })).rejects.toThrow('slow down');
    expect(recorder.runs[0]?.error).toMatch(/slow down/);
    expect(recorder.runs[0]?.end_time).toBeDefined();
  });

  it('fails when it is aborted', async () => {
    const recorder = record();
    const stopped = new AbortController();
    const { url } = await chatServer(() => stopped.abort());
    await expect(chat(url).invoke('Hi', { callbacks, signal: stopped.signal })).rejects.toThrow(/abort/i);
    await vi.waitFor(() => expect(recorder.runs[0]?.error).toMatch(/abort/i));
  });

  it('asks the service the same as without us', async () => {
    record();
    const { url, requests } = await chatServer({ json: completion({ content: 'Hello' }) });
    const history = [new HumanMessage('a'), new AIMessage('b'), new HumanMessage('c')];
    await chat(url).invoke(history);
    await chat(url).invoke(history, { callbacks });
    const [bare, ...traced] = requests();
    expect(traced).toEqual([bare]);
  });
});
