// Model calls that programs make with `fetch`: which requests are recorded, how a response is followed, and what the
// application sees. The table of exchanges tests the formats of the services.
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { ChatPromptTemplate } from '@langchain/core/prompts';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import { CohereClientV2 } from 'cohere-ai';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FetchClient } from '#src/http/fetch-client.ts';
import type { HttpClientOptions, HttpRequest } from '#src/http/transport.ts';
import type { Method } from '#src/instrument/results/observer.ts';
import { traceable } from '#src/instrument/traceable.ts';
import { wrapModel } from '#src/integrations/ai-sdk/model.ts';
import { wrapAnthropic } from '#src/integrations/anthropic/client.ts';
import { recordedFetch, recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { RunspanCallbackHandler } from '#src/integrations/langchain/handler.ts';
import { wrapOpenAI } from '#src/integrations/openai/client.ts';
import { treeOf } from '../instrument/recorder.ts';
import { listenInTest } from '../support/listen-in-test.ts';
import type { LocalModel } from '../support/local-model/server.js';
import { logLines } from '../support/log-lines.ts';
import { readsInside } from '../support/reads-inside.ts';
import { bareClient, chunksOf, localModel, onlyRun, recordWithFetch, tea } from './local-openai.ts';
import { sdks } from './sdks.ts';
import { events, json, serveWire, type WireResponse } from './wire-server.ts';

async function recorded() {
  const recorder = recordWithFetch();
  const model = await localModel();
  return { recorder, model, client: bareClient(model, { maxRetries: 0 }), only: () => onlyRun(recorder.runs) };
}

/** Sends a chat completion with `fetch`, and returns the response and the recorder. */
async function fetched(wire: WireResponse, init: object = {}, path = '/v1/chat/completions') {
  const recorder = recordWithFetch();
  const url = (await serveWire(wire)) + path;
  const response = await fetch(url, { ...post, ...init });
  return { response, recorder, only: () => onlyRun(recorder.runs) };
}

const ask = { model: 'small', messages: tea };
const post = { method: 'POST', body: JSON.stringify(ask) };
const answered = { role: 'assistant', content: 'You said: What is tea?' };
const completion = {
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'A drink.' } }],
};
const delta = (content: string) => ({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] });
const drink = { choices: [{ message: { content: 'A drink.' } }] };

describe('a chat completion', () => {
  test.each(sdks)('is one run with the message for each attempt if %s retries', async (_, sdk) => {
    const { model, recorder } = await recorded();
    await expect(sdk.create(sdk.make(model, { maxRetries: 1 }), { model: 'fail-500' })).rejects.toThrow();
    expect(recorder.runs.map(({ error }) => error)).toEqual(Array(2).fill(expect.stringMatching(/^HTTP 500: ./)));
  });

  test('fails with the error of the connection', async () => {
    const recorder = recordWithFetch();
    const url = await listenInTest(createServer((_, response) => response.destroy()));
    const call = fetch(`${url}/v1/chat/completions`, post);
    await expect(call).rejects.toThrow('fetch failed');
    expect(onlyRun(recorder.runs).error).toMatch(/fetch failed/);
  });
});

test('an abort with an own reason cancels the request, with its text so far, and its caller, and no other trace', async () => {
  const recorder = recordWithFetch();
  const url = await serveWire({ ...events(delta('A ')), staysOpen: true });
  const controller = new AbortController();
  const stopped = new Error('enough');
  const ask = traceable(async () => {
    const response = await fetch(`${url}/v1/chat/completions`, { ...post, signal: controller.signal });
    for await (const _ of response.body as AsyncIterable<unknown>) setImmediate(() => controller.abort(stopped));
  });
  await expect(ask()).rejects.toBe(stopped);
  await expect(traceable(() => Promise.reject(stopped))()).rejects.toBe(stopped);
  const reasons = recorder.runs.map(({ run_type, extra }) => [run_type, extra?.runspan_end_reason]);
  expect(reasons).toEqual([
    ['chain', 'cancelled'],
    ['llm', 'cancelled'],
    ['chain', undefined],
  ]);
  expect(recorder.runs[1]?.outputs).toMatchObject({ choices: [{ message: { content: 'A ' } }] });
});

type Options = { signal?: AbortSignal; timeout?: number; begun?: () => void };
const google = async ({ signal, timeout }: Options, url: string) => {
  const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: url } });
  const config = { ...(signal && { abortSignal: signal }), ...(timeout && { httpOptions: { timeout } }) };
  return client.models.generateContent({ model: 'small', contents: 'Tea?', config });
};
const hanging: [string, (options: Options, model: LocalModel) => Promise<unknown>][] = [
  ...sdks.flatMap(([name, sdk]): typeof hanging => [
    [name, (options, model) => sdk.create(sdk.make(model), { model: 'hang' }, { maxRetries: 1, ...options })],
    [
      `a stream of ${name}`,
      async ({ begun, ...options }, model) => {
        const stream = await sdk.stream(sdk.make(model), { model: 'hang-mid-stream' }, options);
        for await (const _ of stream) begun?.();
      },
    ],
  ]),
  [
    'cohere-ai',
    async ({ signal, timeout = 9_000 }) => {
      const baseUrl = await listenInTest(createServer());
      const client = new CohereClientV2({ token: 'none', baseUrl, maxRetries: 0 });
      const options = { timeoutInSeconds: timeout / 1_000, ...(signal && { abortSignal: signal }) };
      return client.chat({ model: 'hang', messages: [{ role: 'user', content: 'Tea?' }] }, options);
    },
  ],
  ['@google/genai', async (options) => google(options, await serveWire({ parts: [' '], staysOpen: true }))],
];

describe.each(hanging)('a call of %s that is not answered', (name, call) => {
  const isStream = name.startsWith('a stream');
  const endsOf = async (options: Options): Promise<unknown[]> => {
    const { model, recorder } = await recorded();
    await call(options, model).catch(() => {});
    return recorder.runs.map(({ error, extra }) => extra?.runspan_end_reason ?? /\bTimeoutError: /.test(`${error}`));
  };

  test.runIf(!isStream)('has failed at each attempt if the time of the client is over', async () => {
    expect(await endsOf({ timeout: 50 })).toEqual(/cohere|google/.test(name) ? [true] : [true, true]);
  });

  test('has failed if `AbortSignal.timeout` of its caller aborts it', async () => {
    expect(await endsOf({ signal: AbortSignal.timeout(50) })).toEqual([true]);
  });

  test('is cancelled if its caller aborts it, even after the time in which a stream must begin', async () => {
    const controller = new AbortController();
    const begun = (): void => controller.abort();
    if (!isStream) setTimeout(begun, 50);
    const more = isStream ? { begun, timeout: 1_000 } : {};
    expect(await endsOf({ signal: controller.signal, ...more })).toEqual(['cancelled']);
  });
});

const isReadInside = await readsInside();

describe('the body of a response', () => {
  const stream = events(delta('A '), delta('drink.'), '[DONE]');
  const readers: (readonly [string, WireResponse, (response: Response) => unknown])[] = [
    ['json()', json(completion), (response) => response.json()],
    ['text()', json(completion), (response) => response.text()],
    ['arrayBuffer()', json(completion), (response) => response.arrayBuffer()],
    ['a clone', json(completion), (response) => response.clone().json()],
    ['the original after clone()', json(completion), (response) => [response.clone(), response.json()][1]],
    ['an iterator of a clone', stream, (response) => chunksOf(response.clone().body as never)],
    ['another Response with its body', json(completion), (response) => new Response(response.body).json()],
    ['a branch of tee()', json(completion), (response) => new Response(response.body?.tee()[0]).json()],
    ['text() of a stream', stream, (response) => response.text()],
    ['an iterator', stream, (response) => chunksOf(response.body as never)],
    ...(isReadInside
      ? []
      : [
          [
            'a Node stream',
            stream,
            (response: Response) => chunksOf(Readable.fromWeb(response.body as never)),
          ] as const,
        ]),
    ['a transform', stream, (response) => chunksOf(response.body?.pipeThrough(new TextDecoderStream()) as never)],
    [
      'transforms to objects',
      stream,
      (response) => {
        const toObjects = new TransformStream({ transform: (text, controller) => controller.enqueue({ text }) });
        return chunksOf(response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(toObjects) as never);
      },
    ],
    [
      'a transform of a branch of tee()',
      stream,
      (response) => chunksOf(response.body?.tee()[1].pipeThrough(new TextDecoderStream()) as never),
    ],
    ['pipeTo()', stream, (response) => response.body?.pipeTo(new WritableStream())],
    [
      'a reader that stops at the last event',
      stream,
      async (response) => {
        const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
        const decoder = new TextDecoder();
        for (let text = ''; !text.includes('[DONE]'); ) text += decoder.decode((await reader.read()).value);
      },
    ],
  ];

  test.each(readers)('is recorded if the application reads it through %s', async (_title, wire, read) => {
    const { response, only } = await fetched(wire);
    await read(response);
    const run = only();
    expect(run.outputs).toMatchObject(drink);
    expect(run.end_time).toBeDefined();
  });

  const cancelling: [string, (body: ReadableStream) => unknown][] = [
    ['cancel()', (body) => body.cancel()],
    ['an iterator', (body) => body[Symbol.asyncIterator]().return?.()],
  ];
  const slow = json({ error: { message: 'slow down' } });
  test.each<[string, WireResponse, string]>([
    ['and ends', slow, 'HTTP 429: slow down'],
    ['and does not end', { ...slow, staysOpen: true }, 'HTTP 429: slow down'],
    ['and is too long', json({ error: { message: 'a'.repeat(200_000) } }), 'HTTP 429'],
  ])('of an error that is cancelled unread %s is recorded', async (_title, wire, error) => {
    for (const [way, cancel] of cancelling) {
      const { response, only } = await fetched({ ...wire, status: 429 });
      const body = response.body as ReadableStream;
      for (const _time of [1, 2]) expect(await cancel(body), way).toEqual(await cancel(new ReadableStream()));
      expect([body.locked, await body.getReader().read()]).toEqual([false, { done: true, value: undefined }]);
      await expect.poll(() => only()).toMatchObject({ error, end_time: expect.any(String) });
    }
  });

  test('is the same for the application as without recording', async () => {
    const parts = Array.from({ length: 200 }, (_, at) => `data: ${JSON.stringify(delta(`${at} `))}\n\n`);
    const { response, only } = await fetched({ type: 'text/event-stream', parts });
    expect(response).toBeInstanceOf(Response);
    expect(response.bodyUsed).toBe(false);
    expect(await response.text()).toBe(parts.join(''));
    expect(response.bodyUsed).toBe(true);
    await expect(response.json()).rejects.toThrow(TypeError);
    expect(only().error).toBeUndefined();
  });

  test.each<[string, (body: ReadableStream) => ReadableStream]>([
    ['a reader', (body) => body],
    ['a transform', (body) => body.pipeThrough(new TransformStream())],
  ])('is not read ahead of %s', async (_title, through) => {
    const pullsOf = async (): Promise<number> => {
      const reader = through((await fetch('http://localhost/v1/chat/completions', post)).body as never).getReader();
      await reader.read();
      await reader.read();
      await new Promise((resolve) => setImmediate(resolve));
      await reader.cancel();
      return pulls.splice(0).length;
    };
    const pulls: number[] = [];
    const pull = (controller: ReadableStreamDefaultController) => {
      pulls.push(1);
      controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(delta('A '))}\n\n`));
    };
    const headers = { 'content-type': 'text/event-stream' };
    vi.stubGlobal('fetch', async () => new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers }));
    const untraced = await pullsOf();
    const recorder = recordWithFetch();
    expect(await pullsOf()).toBe(untraced);
    expect(onlyRun(recorder.runs)).toMatchObject({ extra: { runspan_end_reason: 'cancelled' } });
  });

  test.each<[string, (response: Response) => ReadableStream | null | undefined]>([
    ['a branch of tee()', (response) => response.body?.tee()[0]],
    ['a clone', (response) => response.clone().body],
  ])('is recorded to its end if %s is read slowly', async (_title, branchOf) => {
    const parts = [delta('A '), delta('drink'), delta('.')].map((part) => `data: ${JSON.stringify(part)}\n\n`);
    const headers = { 'content-type': 'text/event-stream' };
    const body = ReadableStream.from(parts.map((part) => new TextEncoder().encode(part)));
    vi.stubGlobal('fetch', async () => new Response(body, { headers }));
    const recorder = recordWithFetch();
    const branch = branchOf(await fetch('http://localhost/v1/chat/completions', post));
    for await (const _ of branch as AsyncIterable<unknown>) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(onlyRun(recorder.runs).outputs).toMatchObject(drink);
  });

  test('is recorded if a second read of it fails', async () => {
    const { response, only } = await fetched(stream);
    const reader = response.body?.getReader();
    await reader?.read();
    await expect(response.text()).rejects.toThrow(TypeError);
    while ((await reader?.read())?.done === false);
    expect(only().error).toBeUndefined();
    expect(only().outputs).toMatchObject(drink);
  });

  test('of another format marks the run `unreadable`, and one line is logged', async () => {
    const lines = logLines();
    const { response, only } = await fetched({ type: 'text/html', parts: ['<html>secret</html>'] });
    expect(await response.text()).toBe('<html>secret</html>');
    expect(only()).toMatchObject({
      outputs: { outputs: '<html>secret</html>' },
      extra: { metadata: { unreadable: 'response' } },
    });
    expect(lines).toEqual([
      'warn: the response of openai.chat.completions could not be read; the call is not affected, and its run is marked `unreadable`.',
    ]);
  });

  test.each<[string, unknown]>([
    ['/v1/chat/completions', { foo: 1 }],
    ['/v1/chat/completions', [1, 2]],
    ['/v1/chat/completions', [{ foo: 1 }]],
    ['/v1/chat/completions', 'x'],
    ['/v1/chat/completions', null],
    ['/v1/responses', { foo: 1 }],
    ['/v1/embeddings', { foo: 1 }],
    ['/v1/audio/speech', { foo: 1 }],
    ['/v1/messages', { foo: 1 }],
    ['/v1beta/models/gemini-2.5-flash:generateContent', [{ foo: 1 }]],
    ['/v2/chat', { foo: 1 }],
    ['/api/chat', { foo: 1 }],
  ])('of %s that lacks the fields of the format is recorded unchanged and marked: %j', async (path, body) => {
    logLines();
    const request = { ...ask, input: 'Tea', voice: 'alloy', max_tokens: 9, contents: [] };
    for (const method of ['json', 'text'] as const) {
      const { response, recorder } = await fetched(json(body), { body: JSON.stringify(request) }, path);
      await response[method]();
      expect(recorder.runs.at(-1)).toMatchObject({
        outputs: { outputs: body },
        extra: { metadata: { unreadable: 'response' } },
      });
    }
  });

  test.each([
    ['invalid JSON', '{"id": ', undefined],
    ['events', 'data: {"choices":[]}\n\ndata: [DONE]\n\n', undefined],
    ['the page of an error', '<h1>Bad gateway</h1>', 502],
  ])('is recorded as text if json() fails because of %s', async (_title, text, status = 200) => {
    logLines();
    const native = String(await new Response(text).json().catch(String));
    const { response, only } = await fetched({ type: 'application/json', parts: [text], status });
    await expect(response.json()).rejects.toThrow(new SyntaxError(native.replace('SyntaxError: ', '')));
    expect(Object.values(only().outputs ?? {})).toContain(text);
    expect(only().extra?.metadata?.unreadable).toBe(status === 200 ? 'response' : undefined);
  });

  test.each([
    ['is marked `unreadable` if it is a page', '<html>\n<body>Sign in</body></html>', 'response'],
    ['is marked `unreadable` if it is a line of text', 'Try again later', 'response'],
    ['is readable if it has only comments', ': waiting\n\nevent: ping\n\n', undefined],
  ])('of the type of events %s', async (_title, text, unreadable) => {
    logLines();
    const { response, only } = await fetched({ type: 'text/event-stream', parts: [text] });
    expect(await response.text()).toBe(text);
    expect(only().extra?.metadata?.unreadable).toBe(unreadable);
  });

  test('with an event of another format keeps the other events', async () => {
    logLines();
    const { response, only } = await fetched(events(delta('A '), '{broken', delta('drink.'), '[DONE]'));
    await response.text();
    expect(only()).toMatchObject({ outputs: drink, extra: { metadata: { unreadable: 'response' } } });
    expect(only().error).toBeUndefined();
  });
});

describe('a request', () => {
  const others: [string, string, RequestInit][] = [
    ['of another method', '/v1/chat/completions', { method: 'GET', body: null }],
    ['to another path', '/v1/completions/1', {}],
    ['without messages', '/v1/chat/completions', { body: '{"model":"small"}' }],
    ['that is not JSON', '/v1/chat/completions', { body: 'text' }],
    ['of a chat of the application', '/api/chat', { body: JSON.stringify({ messages: tea }) }],
  ];
  test.each(others)('%s to an unknown host is not recorded', async (_title, path, init) => {
    const { response, recorder } = await fetched(json(completion), init, path);
    expect(await response.json()).toEqual(completion);
    expect(recorder.runs).toEqual([]);
  });

  const same: [string, (url: string) => Promise<Response>][] = [
    ['a URL object', (url) => fetch(new URL(url), { method: 'post', body: JSON.stringify(ask) })],
    ['bytes', (url) => fetch(url, { method: 'POST', body: new TextEncoder().encode(JSON.stringify(ask)) })],
    ['a Request', (url) => fetch(new Request(url, post))],
  ];
  test.each(same)('is recorded if it is passed as %s', async (_title, send) => {
    const recorder = recordWithFetch();
    const url = await serveWire(json(completion));
    const call = traceable(async () => (await send(`${url}/v1/chat/completions`)).json(), { name: 'outer' });
    expect(await call()).toEqual(completion);
    expect(treeOf(recorder.runs)).toEqual({ outer: { 'openai.chat.completions': {} } });
    expect(recorder.run('openai.chat.completions')).toMatchObject({ inputs: { messages: tea }, outputs: drink });
  });

  test('to a known service with an unreadable body is recorded and marked', async () => {
    const lines = logLines();
    vi.stubGlobal('fetch', async () => Response.json(completion));
    const recorder = recordWithFetch();
    await (await fetch('https://api.openai.com/v1/chat/completions', { method: 'POST', body: 'text' })).json();
    expect(onlyRun(recorder.runs)).toMatchObject({ outputs: drink, extra: { metadata: { unreadable: 'request' } } });
    expect(lines).toHaveLength(1);
  });

  test('of the library itself is not recorded', async () => {
    const recorder = recordWithFetch();
    const client = new FetchClient({
      endpoint: new URL(await serveWire(json({}))),
      requestTimeoutMs: 5_000,
    } as HttpClientOptions);
    const body = [JSON.stringify(ask)];
    for (const path of ['/runs/multipart', '/v1/chat/completions']) {
      expect(await client.open({ method: 'POST', path, headers: {}, body } as HttpRequest)).toMatchObject({
        status: 200,
      });
    }
    await client.destroy();
    expect(recorder.runs).toEqual([]);
  });

  test('keeps keys out of the record', async () => {
    const recorder = recordWithFetch();
    const url = await serveWire(json(completion));
    const headers = { authorization: 'Bearer key-1234567', 'x-api-key': 'key-1234567' };
    const init = { method: 'POST', headers, body: JSON.stringify(ask) };
    await (await fetch(`${url}/v1/chat/completions?key=key-1234567`, init)).json();
    expect(JSON.stringify(onlyRun(recorder.runs))).not.toContain('key-1234567');
  });
});

describe('a call that two integrations see', () => {
  test('is one run below a wrapped client', async () => {
    const { client, model, recorder } = await recorded();
    await wrapOpenAI(client).chat.completions.create(ask);
    await chunksOf(await client.chat.completions.create({ ...ask, stream: true }));
    const anthropic = wrapAnthropic(new Anthropic({ apiKey: 'none', baseURL: model.url }));
    await anthropic.messages.stream({ ...ask, max_tokens: 9 }).finalMessage();
    expect(recorder.runs.map(({ name }) => name)).toEqual([
      'openai.chat.completions',
      'openai.chat.completions',
      'anthropic.messages',
    ]);
  });

  test('is one run below a model of the AI SDK', async () => {
    const { model, recorder } = await recorded();
    const small = wrapModel(createOpenAI({ apiKey: 'none', baseURL: `${model.url}/v1` }).chat('small'));
    await generateText({ model: small, prompt: 'What is tea?' });
    await streamText({ model: small, prompt: 'What is tea?' }).text;
    expect(recorder.runs).toHaveLength(2);
  });

  test('is one run below a LangChain handler', async () => {
    const { model, recorder } = await recorded();
    const configuration = { baseURL: `${model.url}/v1` };
    const chat = new ChatOpenAI({ model: 'small', apiKey: 'none', configuration, useResponsesApi: false });
    const callbacks = [new RunspanCallbackHandler()];
    await chat.invoke('What is tea?', { callbacks });
    await chunksOf(await chat.stream('What is tea?', { callbacks }));
    await traceable(() => chat.invoke('What is tea?', { callbacks }), { name: 'outer' })();
    expect(treeOf(recorder.runs)).toEqual({ ChatOpenAI: {}, outer: { ChatOpenAI: {} } });
    expect(recorder.runs).toHaveLength(4);
    await chat.invoke('What is tea?');
    expect(recorder.runs).toHaveLength(5);
  });

  test.each([
    ['without', false],
    ['with', true],
  ])('is one run below a LangChain chain %s AsyncLocalStorage', async (_title, isStored) => {
    if (isStored) await import('@langchain/core/context');
    const { model, recorder, client } = await recorded();
    const configuration = { baseURL: `${model.url}/v1` };
    const chat = new ChatOpenAI({ model: 'small', apiKey: 'none', configuration, useResponsesApi: false });
    const chain = ChatPromptTemplate.fromTemplate('What is {drink}?').pipe(chat);
    const config = { callbacks: [new RunspanCallbackHandler()] };
    await chain.invoke({ drink: 'tea' }, config);
    const outer = traceable(
      async () => {
        await chain.batch([{ drink: 'tea' }, { drink: 'coffee' }], config);
        for await (const _ of await chain.stream({ drink: 'tea' }, config)) {
          if (recorder.runs.at(-1)?.name === 'ChatOpenAI') await client.chat.completions.create(ask);
        }
      },
      { name: 'outer' },
    );
    await outer();
    const direct = recorder.runs.filter(({ name }) => name === 'openai.chat.completions');
    expect(direct).toMatchObject([{ parent_run_id: recorder.run('outer').id }]);
    expect(recorder.runs.filter(({ name }) => name === 'ChatOpenAI')).toHaveLength(4);
  });

  test('is one run below a LangChain model that repeats a request, and a further call is recorded', async () => {
    const { model, recorder } = await recorded();
    const handler = new RunspanCallbackHandler();
    const chat = (name: string) =>
      bareClient(model, { maxRetries: 1 }).chat.completions.create({ ...ask, model: name });
    // A step whose list of tags is collected has ended.
    const tags: string[] = [];
    const start = (name: string) =>
      handler.handleChatModelStart({}, [[]], crypto.randomUUID(), undefined, {}, tags, { ls_model_name: name });
    start('fail-500');
    await expect(chat('fail-500')).rejects.toThrow();
    expect(recorder.runs.map(({ name }) => name)).toEqual(['llm']);
    start('small');
    await chat('small');
    await chat('small');
    expect(recorder.runs.map(({ name }) => name)).toEqual(['llm', 'llm', 'openai.chat.completions']);
    expect(tags).toEqual([]);
  });

  test('is one run if a recorded `fetch` sends the requests of another', async () => {
    vi.stubGlobal('fetch', recordedFetch(globalThis.fetch as Method));
    const { client, only } = await recorded();
    await client.chat.completions.create(ask);
    expect(only().name).toBe('openai.chat.completions');
  });

  test('is recorded below a function of the application, even if the function has the type `llm`', async () => {
    const { client, recorder } = await recorded();
    const call = traceable(() => client.chat.completions.create(ask), { name: 'call', runType: 'llm' });
    await call();
    expect(treeOf(recorder.runs)).toEqual({ call: { 'openai.chat.completions': {} } });
  });

  test('is recorded for a model of the AI SDK that is not wrapped, whole and streamed', async () => {
    const { model, recorder } = await recorded();
    const small = createOpenAI({ apiKey: 'none', baseURL: `${model.url}/v1` }).chat('small');
    await generateText({ model: small, prompt: 'What is tea?' });
    expect(await streamText({ model: small, prompt: 'What is tea?' }).text).toBe(answered.content);
    const outputs = { choices: [{ message: answered }] };
    expect(recorder.runs).toMatchObject([{ outputs }, { outputs, events: [{ name: 'new_token' }] }]);
  });
});

describe('the recording', () => {
  test('replaces fetch once, keeps its look, and restores it', () => {
    const original = globalThis.fetch;
    const stop = recordFetch();
    expect(recordFetch()).toBe(stop);
    expect(globalThis.fetch).not.toBe(original);
    expect([fetch.name, fetch.length, `${fetch}`]).toEqual([original.name, original.length, `${original}`]);
    expect(Object.keys(fetch)).toEqual(Object.keys(original));
    stop();
    expect(globalThis.fetch).toBe(original);
  });

  test('leaves a later replacement of fetch in place when it stops', async () => {
    const { model, recorder } = await recorded();
    const stop = recordFetch();
    const replaced = globalThis.fetch;
    vi.stubGlobal('fetch', (...args: Parameters<typeof fetch>) => replaced(...args));
    const client = bareClient(model);
    await client.chat.completions.create(ask);
    expect(recorder.runs).toHaveLength(1);
    stop();
    expect(globalThis.fetch).not.toBe(replaced);
    await client.chat.completions.create(ask);
    expect(recorder.runs).toHaveLength(1);
  });

  test('returns the result of a mock that is not a Response', async () => {
    const result = { ok: true, status: 200, json: async () => completion };
    vi.stubGlobal('fetch', async () => result);
    const recorder = recordWithFetch();
    const response = await fetch('http://localhost/v1/chat/completions', post);
    expect(response).toBe(result);
    expect(await response.json()).toBe(completion);
    expect(onlyRun(recorder.runs).outputs).toMatchObject(drink);
  });

  test('records nothing while tracing is off', async () => {
    onTestFinished(recordFetch());
    const client = bareClient(await localModel());
    expect(await client.chat.completions.create(ask)).toMatchObject({ choices: [{ message: answered }] });
  });
});
