import OpenAI, { AzureOpenAI } from 'openai';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { unwrapOpenAI, wrapOpenAI } from '../../src/integrations/openai/client.ts';
import { recordRuns } from '../../src/testing/record-runs.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { makeSink } from '../run/memory-sink.ts';
import { told } from '../support/told.ts';
import { bareClient, chunksOf, localModel, onlyRun, tea, tracedClient } from './local-openai.ts';

const ask = { model: 'small', messages: tea };

describe('wrapOpenAI', () => {
  test('gives back the same client, of the same type, changed in place', async () => {
    const client = bareClient(await localModel());
    const { completions } = client.chat;
    const wrapped = wrapOpenAI(client);
    expectTypeOf(wrapped).toEqualTypeOf<OpenAI>();
    expect(wrapped).toBe(client);
    expect(wrapped.chat.completions).toBe(completions);
    expect(wrapped).toBeInstanceOf(OpenAI);
  });

  test('again changes nothing, and each call is one run', async () => {
    const { client, only } = await tracedClient();
    const { create } = client.chat.completions;
    expect(wrapOpenAI(client, { tags: ['later'] }).chat.completions.create).toBe(create);
    await client.chat.completions.create(ask);
    expect(only()).not.toHaveProperty('tags');
  });

  test('makes calls runs below the current one', async () => {
    const { client, recorder } = await tracedClient();
    const answer = traceable(async () => client.chat.completions.create(ask), { name: 'answer' });
    await Promise.all([answer(), answer()]);
    const roots = recorder.runs.filter((run) => run.parent_run_id === undefined);
    expect(roots).toHaveLength(2);
    expect(roots.map((root) => recorder.runs.filter((run) => run.parent_run_id === root.id).length)).toEqual([1, 1]);
    expect(treeOf(recorder.runs)).toEqual({ answer: { 'openai.chat.completions': {} } });
  });

  test('tells facts of the call to the run of the call alone, and what the options say to all below', async () => {
    const recorder = record();
    const fetch = traceable(globalThis.fetch, { name: 'fetch', inputs: () => ({}), outputs: () => ({}) });
    const client = wrapOpenAI(bareClient(await localModel(), { fetch }), { metadata: { team: 'a' } });
    await client.chat.completions.create(ask);
    expect(treeOf(recorder.runs)).toEqual({ 'openai.chat.completions': { fetch: {} } });
    const [call, below] = recorder.runs.map(({ extra }) => extra?.metadata);
    expect(call).toMatchObject({ team: 'a', ls_model_name: 'small' });
    expect(below).toEqual({ team: 'a' });
  });

  test('takes tags, metadata, a project and an exporter for every call', async () => {
    const elsewhere = recordRuns();
    elsewhere.stop();
    const recorder = record();
    const options = { tags: ['shop'], metadata: { team: 'a' }, project: 'shop', exporter: elsewhere.exporter };
    const client = wrapOpenAI(bareClient(await localModel()), options);
    await client.chat.completions.create(ask);
    expect(recorder.runs).toEqual([]);
    expect(onlyRun(elsewhere.runs)).toMatchObject({
      tags: ['shop'],
      session_name: 'shop',
      extra: { metadata: { team: 'a', ls_provider: 'openai' } },
    });
  });

  test('leaves the client as it is when it is not enabled', async () => {
    const client = bareClient(await localModel());
    const { create } = client.chat.completions;
    expect(wrapOpenAI(client, { enabled: false }).chat.completions.create).toBe(create);
  });

  test('wraps the clients that withOptions derives', async () => {
    const { client, model, recorder } = await tracedClient();
    const derived = client.withOptions({ maxRetries: 0 });
    expect(derived).toBeInstanceOf(OpenAI);
    expect(derived.maxRetries).toBe(0);
    await derived.chat.completions.create(ask);
    await derived.withOptions({ baseURL: `${model.url}/v2` }).chat.completions.create(ask);
    expect(recorder.runs).toHaveLength(2);
    expect(model.requests.map(({ path }) => path)).toEqual(['/v1/chat/completions', '/v2/chat/completions']);
  });

  test.each([
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['text', 'client', 'string'],
    ['an object of something else', { chat: { completions: {} } }, 'another object'],
  ])('says in one line that %s is no client, and gives it back', (_, given, what) => {
    const lines = told();
    const wrap = wrapOpenAI as (client: unknown) => unknown;
    expect([wrap(given), wrap(given)]).toEqual([given, given]);
    expect((unwrapOpenAI as (client: unknown) => unknown)(given)).toBe(given);
    expect(lines).toEqual([
      `warn: wrapOpenAI(client): expected a client of the openai package, got ${what}; it is not traced.`,
    ]);
  });

  test('tells options that it does not know', async () => {
    const lines = told();
    const options = { name: 'x', tags: 'shop' } as object;
    wrapOpenAI(bareClient(await localModel()), options);
    expect(lines).toEqual([
      'warn: wrapOpenAI: unknown option `name`; left out.',
      'warn: wrapOpenAI: expected `tags` to be a list of at most 1000 texts; left out.',
    ]);
  });

  test('tells options that are no object, also where something else has failed before', async () => {
    const lines = told();
    const unreadable = Object.defineProperty({}, 'chat', {
      get: () => {
        throw new Error('unreadable');
      },
    });
    wrapOpenAI(unreadable as never);
    wrapOpenAI(bareClient(await localModel()), [] as never);
    expect(lines).toEqual([
      'warn: wrapOpenAI failed, the application is not affected: unreadable',
      'warn: wrapOpenAI: expected the options to be an object, got a list; left out.',
    ]);
  });

  test('leaves a client that cannot be changed as it was', async () => {
    const lines = told();
    const client = bareClient(await localModel());
    Object.freeze(client.chat.completions);
    Object.freeze(client.embeddings);
    const recorder = record();
    await wrapOpenAI(client).chat.completions.create(ask);
    expect(recorder.runs).toEqual([]);
    expect(lines).toEqual(
      ['chat.completions.create', 'embeddings.create'].map(
        (name) => `warn: wrapOpenAI: expected \`${name}\` to be a method that can be replaced; it is not traced.`,
      ),
    );
  });
});

describe('a wrapped client', () => {
  test('gives what a bare one gives while tracing is off', async () => {
    const model = await localModel();
    const bare = bareClient(model);
    const wrapped = wrapOpenAI(bareClient(model));
    const [expected, promise] = [bare, wrapped].map((client) => client.chat.completions.create(ask));
    expect(Reflect.ownKeys(promise ?? {})).toEqual(Reflect.ownKeys(expected ?? {}));
    expect(await promise).toEqual(await expected);
  });

  test('records no text where inputs and outputs are hidden', async () => {
    const sink = makeSink({ hideInputs: true, hideOutputs: true });
    const client = wrapOpenAI(bareClient(await localModel()), { exporter: sink });
    const instructed = { model: 'small', input: 'What is tea?', instructions: 'What is tea?' };
    await client.chat.completions.create(ask);
    await chunksOf(await client.chat.completions.create({ ...ask, stream: true }));
    await client.responses.create(instructed);
    await chunksOf(await client.responses.create({ ...instructed, stream: true }));
    expect(sink.ended).toHaveLength(4);
    expect(JSON.stringify(sink.records())).not.toMatch(/tea/);
    expect(sink.records()[0]?.extra?.metadata).toMatchObject({ usage_metadata: { total_tokens: 8 } });
  });

  test('has the types of the client, whatever that is', () => {
    class Compatible extends OpenAI {
      readonly region = 'eu';
    }
    const wrapped = wrapOpenAI(new Compatible({ apiKey: 'none' }));
    expectTypeOf(wrapped).toEqualTypeOf<Compatible>();
    expectTypeOf(wrapped.chat.completions.create).toEqualTypeOf<OpenAI['chat']['completions']['create']>();
    expectTypeOf(wrapOpenAI({ chat: { completions: { create: (_: { model: string }) => 1 } } })).toEqualTypeOf<{
      chat: { completions: { create: (_: { model: string }) => number } };
    }>();
    // @ts-expect-error -- there is nothing to trace
    () => wrapOpenAI({});
    // @ts-expect-error -- unknown
    () => wrapOpenAI(new OpenAI(), { name: 'x' });
  });
});

describe('unwrapOpenAI', () => {
  test('puts every method back, and what is under way ends its run', async () => {
    const { client, recorder } = await tracedClient();
    const stream = await client.chat.completions.create({ ...ask, stream: true });
    expect(unwrapOpenAI(client)).toBe(client);
    for (const owner of [client, client.chat.completions, client.responses, client.embeddings, client.images]) {
      const names = Object.getOwnPropertyNames(owner);
      expect(names.filter((name) => /^(create|compact|generate|edit|createVariation|withOptions)$/.test(name))).toEqual(
        [],
      );
    }
    await chunksOf(stream);
    await client.chat.completions.create(ask);
    await client.withOptions({}).chat.completions.create(ask);
    expect(recorder.runs).toHaveLength(1);
    expect(onlyRun(recorder.runs)).toHaveProperty('end_time');
  });

  test('leaves what somebody else has replaced since', async () => {
    const { client, only } = await tracedClient();
    const { create } = client.chat.completions;
    const theirs = (...args: Parameters<typeof create>) => create.apply(client.chat.completions, args);
    client.chat.completions.create = theirs as typeof create;
    unwrapOpenAI(client);
    expect(client.chat.completions.create).toBe(theirs);
    // Theirs calls ours, which is why it is not traced again.
    await wrapOpenAI(client).chat.completions.create(ask);
    expect(client.chat.completions.create).toBe(theirs);
    expect(only()).toHaveProperty('end_time');
  });
});

describe('the provider is told', () => {
  const providerOf = async (client: OpenAI, url: string) => {
    const recorder = record();
    client.baseURL = url;
    wrapOpenAI(client);
    await client.chat.completions.create(ask).catch(() => {});
    return onlyRun(recorder.runs).extra?.metadata?.ls_provider;
  };
  const offline = { apiKey: 'none', maxRetries: 0, fetch: async () => Response.json({ choices: [] }) };

  test.each([
    ['https://api.openai.com/v1', 'openai'],
    ['https://shop.openai.azure.com/openai/v1', 'azure'],
    ['https://api.deepseek.com', 'deepseek'],
    ['https://x.ai/v1', 'xai'],
    ['https://notx.ai/v1', 'openai'],
    ['https://gateway.shop.test/v1', 'openai'],
    ['https://api.cerebras.ai/v1', 'cerebras'],
    ['https://ollama.com/v1', 'ollama'],
    ['http://127.0.0.1:11434/v1', 'ollama'],
    ['http://ollama:8080/v1', 'ollama'],
    ['http://localhost:8000/v1', 'vllm'],
    ['http://vllm.shop.test/v1', 'vllm'],
    ['http://localhost:4000', 'litellm'],
    ['https://litellm-proxy.shop.test', 'litellm'],
    ['https://gateway.shop.test:8000/v1', 'openai'],
    ['https://notollama.com/v1', 'openai'],
    ['http://127.0.0.1:1234/v1', 'openai'],
    ['no address', 'openai'],
  ])('by the host of %s: %s', async (url, provider) => {
    expect(await providerOf(new OpenAI(offline), url)).toBe(provider);
  });

  test('by `metadata.ls_provider`, which takes precedence over the host', async () => {
    const recorder = record();
    const client = wrapOpenAI(new OpenAI(offline), { metadata: { ls_provider: 'ours', team: 'a' } });
    await client.chat.completions.create(ask);
    expect(onlyRun(recorder.runs).extra?.metadata).toMatchObject({
      ls_provider: 'ours',
      team: 'a',
      ls_model_name: 'small',
    });
  });

  test('by the class of a client for Azure', async () => {
    const recorder = record();
    const model = await localModel();
    const azure = new AzureOpenAI({ apiKey: 'none', apiVersion: '2026-01-01', baseURL: `${model.url}/openai` });
    const client = wrapOpenAI(azure);
    expectTypeOf(client).toEqualTypeOf<AzureOpenAI>();
    await client.chat.completions.create(ask);
    expect(model.requests.map(({ path }) => path)).toEqual(['/openai/deployments/small/chat/completions']);
    expect(onlyRun(recorder.runs)).toMatchObject({ extra: { metadata: { ls_provider: 'azure' } } });
  });
});

test.each<[string, (client: OpenAI) => Promise<unknown>, object]>([
  [
    'chat completion',
    (client) => client.chat.completions.create(ask),
    {
      prompt_tokens: 9,
      completion_tokens: 1,
      total_tokens: 10,
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
    },
  ],
  [
    'response',
    (client) => client.responses.create({ model: 'small', input: 'What is tea?' }),
    {
      input_tokens: 9,
      output_tokens: 1,
      total_tokens: 10,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
    },
  ],
])('the tokens that a %s has read from the cache and written to it are told', async (_, call, usage) => {
  const recorder = record();
  const fetch = async () => Response.json({ object: 'response', choices: [], output: [], usage });
  await call(wrapOpenAI(new OpenAI({ apiKey: 'none', fetch })));
  // Both are among the nine.
  expect(onlyRun(recorder.runs).outputs?.usage_metadata).toEqual({
    input_tokens: 9,
    output_tokens: 1,
    total_tokens: 10,
    input_token_details: { cache_read: 4, cache_creation: 3 },
  });
});

describe('other calls:', () => {
  test('a completion, at once and streamed', async () => {
    const { client, recorder } = await tracedClient();
    const body = { model: 'small', prompt: 'What is tea?', max_tokens: 5 };
    await client.completions.create(body);
    await chunksOf(await client.completions.create({ ...body, stream: true }));
    const [atOnce, streamed] = recorder.runs;
    expect(atOnce).toMatchObject({
      name: 'openai.completions',
      run_type: 'llm',
      inputs: { prompt: 'What is tea?' },
      outputs: {
        choices: [{ index: 0, text: ' You said: What is tea?', finish_reason: 'stop' }],
        usage_metadata: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
      },
      extra: { metadata: { ls_model_type: 'llm', ls_max_tokens: 5 } },
    });
    expect(streamed?.outputs?.choices).toEqual(atOnce?.outputs?.choices);
  });

  test.each(['float', 'base64', undefined] as const)('embeddings as %s, without the vectors', async (format) => {
    const { client, only } = await tracedClient();
    const input = ['green tea', 'black tea'];
    const body = { model: 'small', input, dimensions: 12, ...(format && { encoding_format: format }) };
    const { data } = await client.embeddings.create(body);
    expect(data).toHaveLength(2);
    const { name, run_type, inputs, outputs, extra } = only();
    expect({ name, run_type, inputs }).toEqual({
      name: 'openai.embeddings',
      run_type: 'embedding',
      inputs: { input },
    });
    expect(outputs).toEqual({
      object: 'list',
      model: 'small',
      count: 2,
      dimensions: 12,
      usage: { prompt_tokens: 4, total_tokens: 4 },
      usage_metadata: { input_tokens: 4, output_tokens: 0, total_tokens: 4 },
    });
    expect(extra?.metadata).toMatchObject({ ls_model_type: 'embedding', ls_invocation_params: { dimensions: 12 } });
  });

  test('images, at once and streamed, without the pixels', async () => {
    const { client, recorder } = await tracedClient();
    const body = { model: 'small', prompt: 'a cup of tea' };
    const answer = await client.images.generate(body);
    expect(answer.data?.[0]?.b64_json).toMatch(/^iVBOR/);
    await chunksOf(await client.images.generate({ ...body, stream: true, partial_images: 1 }));
    const [atOnce, streamed] = recorder.runs;
    expect(atOnce).toMatchObject({
      name: 'openai.images.generate',
      inputs: { prompt: 'a cup of tea' },
      // The PNG has 70 bytes.
      outputs: { data: [{ b64_json: '[Image: 70 bytes]' }], usage_metadata: { input_tokens: 5, output_tokens: 100 } },
    });
    expect(streamed?.outputs).toEqual({ ...atOnce?.outputs, partial_images: 1 });
    expect(JSON.stringify(recorder.runs)).not.toContain('iVBOR');
  });

  test('an image that is edited, with its file left to the SDK', async () => {
    const { client, model, only } = await tracedClient();
    const image = new File([new Uint8Array([1, 2, 3])], 'tea.png', { type: 'image/png' });
    await client.images.edit({ model: 'small', prompt: 'with milk', image });
    expect(model.requests[0]?.text).toContain('filename="tea.png"');
    expect(only()).toMatchObject({
      name: 'openai.images.edit',
      inputs: { prompt: 'with milk' },
      outputs: { data: [{ b64_json: '[Image: 70 bytes]' }] },
      extra: { metadata: { ls_invocation_params: { model: 'small' } } },
    });
  });

  test('a variation of an image', async () => {
    const { client, only } = await tracedClient();
    const image = new File([new Uint8Array([1, 2, 3])], 'tea.png', { type: 'image/png' });
    await client.images.createVariation({ model: 'small', image });
    expect(only()).toMatchObject({
      name: 'openai.images.createVariation',
      outputs: { data: [{ b64_json: '[Image: 70 bytes]' }] },
    });
  });

  test('a conversation that a model shortens', async () => {
    const compacted = {
      object: 'response.compaction',
      output: [{ type: 'compaction', encrypted_content: 'x' }],
      usage: { input_tokens: 9, output_tokens: 2, total_tokens: 11 },
    };
    const { client, only } = await tracedClient({ fetch: async () => Response.json(compacted) });
    await client.responses.compact({ model: 'small', input: 'What is tea?' });
    expect(only()).toMatchObject({
      name: 'openai.responses.compact',
      run_type: 'llm',
      inputs: { messages: tea },
      outputs: { ...compacted, usage_metadata: { input_tokens: 9, output_tokens: 2, total_tokens: 11 } },
    });
  });
});
