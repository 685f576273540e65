import { describe, expect, test } from 'vitest';
import { chunksOf, tracedClient } from './local-openai.ts';

const question = 'What is tea?';
const lookUp = {
  type: 'function' as const,
  name: 'look_up',
  strict: false,
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
};

describe('a response', () => {
  test('is an llm run with instructions and input as messages, and the answer without their echo', async () => {
    const { client, only } = await tracedClient();
    const body = { model: 'small', input: question, instructions: 'Be brief', max_output_tokens: 9, tools: [lookUp] };
    await client.responses.create({ ...body, tool_choice: 'none' });
    const { name, run_type, inputs, outputs, extra } = only();
    expect({ name, run_type }).toEqual({ name: 'openai.responses', run_type: 'llm' });
    expect(inputs).toEqual({
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: question },
      ],
    });
    expect(Object.keys(outputs ?? {})).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(instructions|tools|output_text)$/)]),
    );
    expect(outputs).toMatchObject({ object: 'response', status: 'completed', model: 'small-2026-01-01' });
    expect(extra?.metadata).toMatchObject({
      ls_provider: 'openai',
      ls_model_type: 'chat',
      ls_model_name: 'small',
      response_model: 'small-2026-01-01',
      ls_max_tokens: 9,
      ls_invocation_params: { model: 'small', max_output_tokens: 9, tools: [lookUp], tool_choice: 'none' },
      request_id: 'req_1',
    });
  });

  test('counts cached and reasoning tokens', async () => {
    const { client, only } = await tracedClient();
    await client.responses.create({ model: 'small', input: question, instructions: 'Be brief', reasoning: {} });
    expect(only().outputs?.usage_metadata).toEqual({
      input_tokens: 5,
      output_tokens: 8,
      total_tokens: 13,
      input_token_details: { cache_read: 2 },
      output_token_details: { reasoning: 3 },
    });
  });

  test('keeps the items of its input, and a prompt of the service, as they are', async () => {
    const { client, only } = await tracedClient();
    const input = [
      { role: 'user' as const, content: question },
      { type: 'function_call' as const, call_id: 'call_1', name: 'look_up', arguments: '{}' },
      { type: 'function_call_output' as const, call_id: 'call_1', output: 'a drink' },
    ];
    const prompt = { id: 'pmpt_1', variables: { name: 'Ada' } };
    await client.responses.create({ model: 'small', input, prompt });
    expect(only().inputs).toEqual({ messages: input, prompt });
    expect(only().outputs).toMatchObject({ output: [{ content: [{ text: 'The tools say: a drink' }] }] });
    expect(only().extra?.metadata?.ls_invocation_params).toEqual({ model: 'small' });
  });

  test('keeps the keys to other servers to itself', async () => {
    const { client, only } = await tracedClient();
    const server = { type: 'mcp' as const, server_label: 'shop', server_url: 'https://shop.test' };
    const tools = [{ ...server, authorization: 'secret', headers: { 'X-Key': 'secret' } }];
    await client.responses.create({ model: 'small', input: question, tools });
    expect(only().extra?.metadata?.ls_invocation_params).toEqual({ model: 'small', tools: [server] });
    expect(JSON.stringify(only())).not.toContain('secret');
  });

  test('that has failed is a run with an error', async () => {
    const { client, only } = await tracedClient();
    expect((await client.responses.create({ model: 'fail-response', input: question })).status).toBe('failed');
    expect(only()).toMatchObject({ error: 'server_error: the model gave up', outputs: { status: 'failed' } });
  });

  test('in the background is a receipt, and no run', async () => {
    const { client, recorder } = await tracedClient();
    const receipt = await client.responses.create({ model: 'small', input: question, background: true });
    expect(receipt.status).toBe('queued');
    expect(recorder.runs).toEqual([]);
  });

  test('in the background that is streamed is a run with its answer', async () => {
    const { client, only } = await tracedClient();
    const body = { model: 'small', input: question, background: true, stream: true as const };
    await chunksOf(await client.responses.create(body));
    expect(only()).toMatchObject({
      outputs: { output: [{ content: [{ text: 'You said: What is tea?' }] }] },
      extra: { metadata: { ls_invocation_params: { background: true } } },
    });
  });
});

describe('a streamed response', () => {
  test.each([
    ['text', {}],
    ['a function call', { tools: [lookUp] }],
    ['reasoning', { reasoning: {} }],
    ['a refusal', { model: 'refuse' }],
    ['a failure', { model: 'fail-response' }],
  ])('of %s is recorded as the same answer at once', async (_, options) => {
    const { client, recorder } = await tracedClient();
    const body = { model: 'small', input: question, ...options };
    await client.responses.create(body);
    await chunksOf(await client.responses.create({ ...body, stream: true }));
    const [atOnce, streamed] = recorder.runs;
    expect(streamed?.outputs).toEqual(atOnce?.outputs);
    expect(streamed?.error).toEqual(atOnce?.error);
  });

  test.each<[string, string, object[]]>([
    ['reasoning', 'me ', [{ type: 'reasoning', summary: [{ text: 'Let me ' }] }]],
    [
      'text',
      'is ',
      [
        { type: 'reasoning', summary: [{ text: 'Let me think.' }] },
        { type: 'message', status: 'in_progress', content: [{ type: 'output_text', text: 'You said: What is ' }] },
      ],
    ],
  ])('that is left in its %s has what the deltas came to', async (_, delta, output) => {
    const { client, only } = await tracedClient();
    const stream = await client.responses.create({ model: 'small', input: question, reasoning: {}, stream: true });
    for await (const event of stream) if ('delta' in event && event.delta === delta) break;
    expect(only().outputs).toMatchObject({ status: 'in_progress', output });
    expect(only().extra?.metadata).toMatchObject({ end_reason: 'cancelled', response_model: 'small-2026-01-01' });
  });

  test('that is left in the arguments of a call has those that came', async () => {
    const { client, only } = await tracedClient();
    const stream = await client.responses.create({ model: 'small', input: question, tools: [lookUp], stream: true });
    for await (const event of stream) if (event.type === 'response.function_call_arguments.delta') break;
    expect(only().outputs).toMatchObject({
      output: [{ type: 'function_call', name: 'look_up', arguments: '{"query"' }],
    });
  });
});

describe('the helpers of the SDK are traced through the call that they make:', () => {
  test('parse', async () => {
    const { client, only } = await tracedClient();
    const schema = { type: 'object', properties: { dish: { type: 'string' } } };
    const format = { type: 'json_schema' as const, name: 'dish', schema, strict: true };
    const answer = await client.responses.parse({ model: 'small', input: question, text: { format } });
    expect(answer.output_text).toBe('{"dish":"What is tea?"}');
    expect(only().outputs).toMatchObject({ output: [{ content: [{ text: '{"dish":"What is tea?"}' }] }] });
  });

  test('stream', async () => {
    const { client, only } = await tracedClient();
    const stream = client.responses.stream({ model: 'small', input: question });
    let text = '';
    stream.on('response.output_text.delta', ({ delta }) => {
      text += delta;
    });
    expect((await stream.finalResponse()).output_text).toBe('You said: What is tea?');
    expect(text).toBe('You said: What is tea?');
    expect(only().outputs).toMatchObject({ status: 'completed', output: [{ content: [{ text }] }] });
  });
});
