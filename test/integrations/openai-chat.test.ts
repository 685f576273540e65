// What is recorded of chat completions. Answers are those of examples/local-model: it repeats the question, and a token is
// a word of it.
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { chunksOf, lookUp, tea, tracedClient, weather } from './local-openai.ts';

const answered = { role: 'assistant', content: 'You said: What is tea?', refusal: null };

describe('a chat completion', () => {
  test('is an llm run with its messages, the answer, and the tokens in the terms of the interface', async () => {
    const { client, only } = await tracedClient();
    const messages = [{ role: 'system' as const, content: 'Be brief' }, ...tea];
    const answer = await client.chat.completions.create({ model: 'small', messages, reasoning_effort: 'low' });
    const { name, run_type, inputs, outputs, extra, end_time } = only();
    expect({ name, run_type, inputs }).toEqual({
      name: 'openai.chat.completions',
      run_type: 'llm',
      inputs: { messages },
    });
    // Five words of an answer and three of reasoning; the first two words were in the cache.
    const usage = {
      input_tokens: 5,
      output_tokens: 8,
      total_tokens: 13,
      input_token_details: { cache_read: 2, audio: 0 },
      output_token_details: { reasoning: 3, audio: 0 },
    };
    expect(outputs).toEqual({ ...answer, usage_metadata: usage });
    expect(outputs).toMatchObject({ choices: [{ message: { ...answered, reasoning_content: 'Let me think.' } }] });
    expect(extra?.metadata).toMatchObject({ usage_metadata: usage });
    expect(end_time).toBeDefined();
  });

  test('tells provider, model, parameters and the id of the request in its metadata', async () => {
    const { client, only } = await tracedClient();
    const parameters = { model: 'small', temperature: 0.5, max_completion_tokens: 9, stop: '.', tools: [lookUp] };
    await client.chat.completions.create({ ...parameters, messages: tea, user: 'ada' });
    expect(only().extra?.metadata).toMatchObject({
      ls_provider: 'openai',
      ls_model_type: 'chat',
      ls_model_name: 'small',
      response_model: 'small-2026-01-01',
      ls_temperature: 0.5,
      ls_max_tokens: 9,
      ls_stop: ['.'],
      ls_invocation_params: { ...parameters, user: 'ada' },
      request_id: 'req_1',
    });
    expect(only().extra?.metadata?.ls_invocation_params).not.toHaveProperty('messages');
  });

  test('is recorded as it was when it was called', async () => {
    const { client, only } = await tracedClient();
    const messages = structuredClone(tea);
    const pending = client.chat.completions.create({ model: 'small', messages: messages });
    (messages[0] as { content: string }).content = 'changed';
    await pending;
    expect(only().inputs).toEqual({ messages: tea });
  });
});

describe('a streamed chat completion', () => {
  test.each([
    ['text', {}],
    ['several choices', { n: 2 }],
    ['a tool call', { tools: [lookUp] }],
    ['several tool calls', { tools: [lookUp, weather], messages: [{ role: 'user' as const, content: 'Ask all' }] }],
    ['a refusal', { model: 'refuse' }],
    ['log probabilities', { logprobs: true }],
    ['reasoning', { reasoning_effort: 'low' as const }],
    ['audio', { modalities: ['text', 'audio'] as ('text' | 'audio')[] }],
  ])('of %s is recorded as the same answer at once', async (_, options) => {
    const { client, recorder } = await tracedClient();
    const body = { model: 'small', messages: tea, ...options };
    await client.chat.completions.create(body);
    await chunksOf(
      await client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } }),
    );
    const [atOnce, streamed] = recorder.runs;
    expect(streamed?.outputs).toEqual(atOnce?.outputs);
    expect(streamed?.extra?.metadata).toMatchObject({ usage_metadata: atOnce?.outputs?.usage_metadata });
  });

  test('joins the arguments of each tool call', async () => {
    const { client, only } = await tracedClient();
    const messages = [{ role: 'user' as const, content: 'Ask all of them' }];
    await chunksOf(
      await client.chat.completions.create({ model: 'small', messages, tools: [lookUp, weather], stream: true }),
    );
    const call = (id: string, name: string, args: string) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    });
    expect(only().outputs?.choices).toEqual([
      {
        index: 0,
        finish_reason: 'tool_calls',
        logprobs: null,
        message: {
          role: 'assistant',
          content: null,
          refusal: null,
          tool_calls: [
            call('call_1', 'look_up', '{"query":"Ask all of them","limit":4}'),
            call('call_2', 'weather', '{"city":"Ask all of them"}'),
          ],
        },
      },
    ]);
  });

  test('has no usage when none was asked for, and nothing is added to the request', async () => {
    const { client, model, only } = await tracedClient();
    const body = { model: 'small', messages: tea, stream: true as const };
    await chunksOf(await client.chat.completions.create(body));
    expect(model.requests.map((request) => request.body)).toEqual([body]);
    expect(body).toEqual({ model: 'small', messages: tea, stream: true });
    expect(only().outputs).not.toHaveProperty('usage_metadata');
    expect(only().extra?.metadata).not.toHaveProperty('usage_metadata');
  });

  test('keeps pixels and sound out of the run', async () => {
    const { client, only } = await tracedClient();
    await client.chat.completions.create({ model: 'small', messages: tea, modalities: ['text', 'audio'] });
    expect(only().outputs).toMatchObject({ choices: [{ message: { audio: { data: '[Audio: 70 bytes]' } } }] });
  });
});

describe('a run ends with', () => {
  const ask = { model: 'small', messages: tea };
  const answer = { choices: [{ message: answered }] };
  const derived = (promise: ReturnType<typeof OpenAI.prototype.chat.completions.retrieve>) => {
    const content = promise._thenUnwrap(({ choices }) => choices[0]?.message.content).then((text) => text);
    return Promise.all([content, promise.asResponse()]);
  };
  const together = (promise: PromiseLike<unknown> & { asResponse(): Promise<Response> }) =>
    Promise.all([promise.asResponse(), promise]);

  test.each<[string, (client: OpenAI) => Promise<unknown>, object]>([
    ['the answer, by `withResponse`', (client) => client.chat.completions.create(ask).withResponse(), answer],
    [
      'the answer, where it is read beside the response',
      (client) => together(client.chat.completions.create(ask)),
      answer,
    ],
    [
      'the answer, where only what is derived reads it',
      (client) => derived(client.chat.completions.create(ask)),
      answer,
    ],
    [
      'the status, where only the response is taken',
      (client) => client.chat.completions.create(ask).asResponse(),
      { status: 200 },
    ],
  ])('%s', async (_, take, outputs) => {
    const { client, only } = await tracedClient();
    await take(client);
    expect(only()).toMatchObject({ outputs, extra: { metadata: { request_id: 'req_1' } } });
    expect(only()).toHaveProperty('end_time');
  });

  test('the error, and is cancelled, where the call is aborted before its answer', async () => {
    const { client, model, only } = await tracedClient();
    const { signal, abort } = abortable();
    const pending = client.chat.completions.create({ model: 'hang', messages: tea }, { signal });
    while (model.requests.length === 0) await new Promise(setImmediate);
    abort();
    await expect(pending).rejects.toThrow('Request was aborted.');
    expect(only()).toMatchObject({
      error: expect.stringMatching(/^APIUserAbortError: Request was aborted\.\n/),
      extra: { metadata: { end_reason: 'cancelled' } },
    });
  });

  test('the error of the service, and the id of the request', async () => {
    const { client, only } = await tracedClient();
    await client.chat.completions.create({ model: 'fail-401', messages: tea }).catch(() => {});
    expect(only()).toMatchObject({
      error: expect.stringMatching(/^AuthenticationError: 401 asked to fail with 401\n/),
      extra: { metadata: { request_id: 'req_1' } },
    });
    expect(only().extra?.metadata).not.toHaveProperty('end_reason');
  });

  test('the error that a gateway answers with in the place of choices', async () => {
    const fetch = async () => Response.json({ error: { code: 502, message: 'Provider returned error' } });
    const { client, only } = await tracedClient({ fetch });
    await client.chat.completions.create({ model: 'small', messages: tea });
    expect(only()).toMatchObject({ error: 'Provider returned error', outputs: { error: { code: 502 } } });
  });

  test('the answer to the last attempt, of several', async () => {
    const { client, model, only } = await tracedClient();
    await client.chat.completions.create({ model: 'fail-500-once', messages: tea });
    expect(model.requests).toHaveLength(2);
    expect(only()).toMatchObject({ outputs: answer, extra: { metadata: { request_id: 'req_2' } } });
  });
});

describe('the helpers of the SDK are traced through the call that they make:', () => {
  test('parse', async () => {
    const { client, only } = await tracedClient();
    const schema = { type: 'object', properties: { dish: { type: 'string' } } };
    const format = { type: 'json_schema' as const, json_schema: { name: 'dish', schema, strict: true } };
    await client.chat.completions.parse({ model: 'small', messages: tea, response_format: format });
    expect(only().outputs).toMatchObject({ choices: [{ message: { content: '{"dish":"What is tea?"}' } }] });
  });

  test('stream', async () => {
    const { client, only } = await tracedClient();
    const stream = client.chat.completions.stream({ model: 'small', messages: tea });
    let text = '';
    stream.on('content', (delta) => {
      text += delta;
    });
    const final = await stream.finalChatCompletion();
    expect(text).toBe('You said: What is tea?');
    expect(final.choices[0]?.message.content).toBe(text);
    expect(only().outputs).toMatchObject({ choices: [{ message: answered, finish_reason: 'stop' }] });
  });

  test('runTools', async () => {
    const { client, recorder } = await tracedClient();
    const tool = {
      ...lookUp,
      function: { ...lookUp.function, description: '', parse: JSON.parse, function: () => 'a drink' },
    };
    const runner = client.chat.completions.runTools({ model: 'small', messages: tea, tools: [tool] });
    expect(await runner.finalContent()).toBe('The tools say: a drink');
    const [first, second] = recorder.runs;
    expect(recorder.runs).toHaveLength(2);
    expect(first?.outputs).toMatchObject({
      choices: [{ message: { tool_calls: [{ function: { name: 'look_up' } }] } }],
    });
    expect(second?.inputs).toMatchObject({
      messages: [...tea, { role: 'assistant' }, { role: 'tool', content: 'a drink' }],
    });
  });
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
