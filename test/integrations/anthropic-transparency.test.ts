// Programs that use the real SDK, with a client as it is and with a traced one: they see the same.
import Anthropic, { APIPromise } from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
import { expect, test } from 'vitest';
import { wrapAnthropic } from '../../src/integrations/anthropic/client.ts';
import { record } from '../instrument/recorder.ts';
import { allOf, ask, localModel, makeClient, WEATHER_TOOL } from './anthropic-client.ts';

const model = localModel();

type Program = (client: Anthropic) => unknown;

const thrice = ask('one two three');
const streamed = { ...thrice, stream: true } as const;

const plain: Record<string, Program> = {
  'an awaited message': async (client) => {
    const message = await client.messages.create(thrice);
    return [message, message._request_id, Object.keys(message)];
  },
  'the promise itself': async (client) => {
    const promise = client.messages.create(thrice);
    const seen = [promise.constructor === APIPromise, Object.keys(promise), Object.prototype.toString.call(promise)];
    return [...seen, 'then' in promise, Object.hasOwn(promise, 'then'), (await promise).content];
  },
  'a promise that is awaited twice': async (client) => {
    const promise = client.messages.create(thrice);
    const [first, second] = [await promise, await promise];
    return first === second;
  },
  withResponse: async (client) => {
    const { data, response, request_id } = await client.messages.create(thrice).withResponse();
    return [data, response.status, response.bodyUsed, request_id];
  },
  asResponse: async (client) => {
    const response = await client.messages.create(thrice).asResponse();
    return [response instanceof Response, response.bodyUsed, await response.json()];
  },
  'asResponse and the message': async (client) => {
    const promise = client.messages.create(thrice);
    const [response, message] = await Promise.all([promise.asResponse(), promise]);
    return [response.status, message.content];
  },
  'finally and catch': async (client) => {
    const seen: unknown[] = [];
    seen.push((await client.messages.create(thrice).finally(() => seen.push('finally'))).content);
    return [...seen, await client.messages.create(ask('', { model: 'fail-500' })).catch(told)];
  },
  'a thought': (client) => client.messages.create({ ...thrice, thinking: { type: 'enabled', budget_tokens: 1024 } }),
  'a tool': (client) => client.messages.create({ ...thrice, tools: [WEATHER_TOOL] }),
  parse: async (client) => {
    const format = jsonSchemaOutputFormat({ type: 'object', properties: {}, additionalProperties: true } as const, {
      transform: false,
    });
    const { parsed_output } = await client.messages.parse({
      ...ask('', { messages: [{ role: 'user', content: '{}' }] }),
      tools: [],
      output_config: { format: { ...format, parse: (content: string) => ({ content }) } },
    });
    return parsed_output;
  },
  'the beta resource': async (client) => [
    await client.beta.messages.create(thrice),
    await allOf(await client.beta.messages.create(streamed)),
    await client.beta.messages.stream(thrice).finalMessage(),
  ],
  'a client with other options': async (client) => {
    const other = client.withOptions({ maxRetries: 1, defaultHeaders: { 'x-test': 'a' } });
    return [other.constructor === Anthropic, other.maxRetries, (await other.messages.create(thrice)).content];
  },
  'the methods': (client) => {
    const { create, stream } = client.messages;
    return [create.name, create.length, stream.name, client.withOptions.name, Object.keys(client.messages)];
  },
  'what is not traced': (client) => settled(client.messages.countTokens(thrice)),
};

const failures: Record<string, Program> = {
  'an error of the service': (client) => settled(client.messages.create(ask('', { model: 'fail-400' }))),
  'an error of a stream before it': (client) => settled(client.messages.create({ ...streamed, model: 'fail-429' })),
  'an error of withResponse': (client) =>
    settled(client.messages.create(ask('', { model: 'fail-400' })).withResponse()),
  'an error of asResponse': (client) => settled(client.messages.create(ask('', { model: 'fail-400' })).asResponse()),
  'a retry': async (client) => {
    const before = model().requests.length;
    const message = await client.messages.create(ask('again', { model: 'fail-429-once' }), { maxRetries: 2 });
    return [message.content, model().requests.length - before];
  },
  'retries that do not help': async (client) => {
    const before = model().requests.length;
    const outcome = await settled(client.messages.create(ask('', { model: 'fail-500' }), { maxRetries: 2 }));
    return [outcome, model().requests.length - before];
  },
  'no connection': async (client) =>
    settled(client.withOptions({ baseURL: 'http://127.0.0.1:1' }).messages.create(thrice)),
  'a signal that is aborted already': (client) =>
    settled(client.messages.create(thrice, { signal: AbortSignal.abort() })),
  'a signal that is aborted while waiting': async (client) => {
    const controller = new AbortController();
    const before = model().requests.length;
    const outcome = settled(client.messages.create(ask('', { model: 'hang' }), { signal: controller.signal }));
    while (model().requests.length === before) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    return outcome;
  },
  'an error at once': (client) => {
    const create = client.messages.create as (params?: unknown) => unknown;
    return [outcomeOf(() => create.call(client.messages)), outcomeOf(() => create.call(undefined, thrice))];
  },
  'a parameter that the SDK refuses': (client) =>
    outcomeOf(() => client.messages.create(ask('', { max_tokens: 10_000_000 }))),
};

const streams: Record<string, Program> = {
  'all events': async (client) => allOf(await client.messages.create(streamed)),
  'all events of a tool': async (client) => allOf(await client.messages.create({ ...streamed, tools: [WEATHER_TOOL] })),
  'a stream with its response': async (client) => {
    const { data, response, request_id } = await client.messages.create(streamed).withResponse();
    return [data.constructor.name, Object.keys(data), response.status, request_id, await allOf(data)];
  },
  'a bare response': async (client) => (await client.messages.create(streamed).asResponse()).text(),
  'break, which aborts the request': async (client) => {
    const stream = await client.messages.create({ ...streamed, model: 'hang-mid-stream' });
    const seen: unknown[] = [];
    for await (const event of stream) {
      seen.push(event.type, stream.controller.signal.aborted);
      if (event.type === 'content_block_start') break;
    }
    return [...seen, stream.controller.signal.aborted, await settled(allOf(stream))];
  },
  'an error within the loop': async (client) => {
    const stream = await client.messages.create({ ...streamed, model: 'hang-mid-stream' });
    const loop = async () => {
      for await (const event of stream) throw new Error(event.type);
    };
    return [await settled(loop()), stream.controller.signal.aborted];
  },
  'controller.abort()': async (client) => {
    const stream = await client.messages.create({ ...streamed, model: 'hang-mid-stream' });
    const seen: unknown[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === 'content_block_delta') stream.controller.abort();
    }
    return seen;
  },
  'a signal': async (client) => {
    const controller = new AbortController();
    const stream = await client.messages.create(
      { ...streamed, model: 'hang-mid-stream' },
      { signal: controller.signal },
    );
    const seen: unknown[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === 'content_block_delta') controller.abort();
    }
    return seen;
  },
  'the methods of the iterator': async (client) => {
    const iterator = (await client.messages.create(streamed))[Symbol.asyncIterator]();
    const boom = new Error('boom');
    return [
      Object.prototype.toString.call(iterator),
      await iterator.next(),
      await settled(iterator.throw?.(boom)),
      await iterator.next(),
    ];
  },
  'an iterator that is closed before its first step, and another': async (client) => {
    const stream = await client.messages.create(streamed);
    const iterator = stream[Symbol.asyncIterator]();
    return [await iterator.return?.(undefined), await iterator.next(), await allOf(stream)];
  },
  'steps that are asked for at once': async (client) => {
    const iterator = (await client.messages.create(streamed))[Symbol.asyncIterator]();
    return Promise.all([iterator.next(), iterator.next(), iterator.return?.(undefined), iterator.next()]);
  },
  tee: async (client) => {
    const [left, right] = (await client.messages.create(streamed)).tee();
    return [left.constructor.name, await allOf(left), await allOf(right)];
  },
  toReadableStream: async (client) => new Response((await client.messages.create(streamed)).toReadableStream()).text(),
  'toReadableStream, cancelled': async (client) => {
    const stream = await client.messages.create({ ...streamed, model: 'hang-mid-stream' });
    const reader = stream.toReadableStream().getReader();
    const first = await reader.read();
    await reader.cancel();
    return [first.done, stream.controller.signal.aborted];
  },
  'a second reading': async (client) => {
    const stream = await client.messages.create(streamed);
    await allOf(stream);
    return settled(allOf(stream));
  },
  'an error event': async (client) =>
    collected(await client.messages.create({ ...streamed, model: 'fail-mid-stream' })),
  'an event that is no JSON': async (client) =>
    collected(await client.messages.create({ ...streamed, model: 'malformed' })),
  'a connection that ends': async (client) =>
    collected(await client.messages.create({ ...streamed, model: 'drop-mid-stream' })),
};

const messageStreams: Record<string, Program> = {
  'its events': async (client) => {
    const seen: unknown[] = [];
    const stream = client.messages.stream({ ...thrice, tools: [WEATHER_TOOL] });
    const names = ['connect', 'streamEvent', 'text', 'inputJson', 'contentBlock', 'message', 'finalMessage', 'end'];
    for (const name of names) {
      stream.on(name as 'text', (...args) => seen.push([name, structuredClone(args)]));
    }
    seen.push(stream.constructor.name, await stream.finalMessage(), stream.ended, stream.errored, stream.aborted);
    return [...seen, stream.request_id, stream.receivedMessages];
  },
  'finalText and done': async (client) => {
    const stream = client.messages.stream(thrice);
    await stream.done();
    return [await stream.finalText(), stream.currentMessage];
  },
  'async iteration': (client) => allOf(client.messages.stream(thrice)),
  'a break': async (client) => {
    const stream = client.messages.stream(thrice);
    const seen: unknown[] = [];
    for await (const event of stream) {
      seen.push(event);
      break;
    }
    return [seen, stream.controller.signal.aborted, await settled(stream.done()), stream.aborted];
  },
  withResponse: async (client) => {
    const stream = client.messages.stream(thrice);
    const { data, response, request_id } = await stream.withResponse();
    await stream.done();
    return [data === stream, response.status, request_id];
  },
  toReadableStream: (client) => new Response(client.messages.stream(thrice).toReadableStream()).text(),
  'an error listener': async (client) => {
    const seen: unknown[] = [];
    const stream = client.messages.stream(ask('', { model: 'fail-mid-stream' }));
    stream.on('error', (error) => seen.push(told(error))).on('end', () => seen.push('end'));
    return [await settled(stream.done()), seen, stream.errored, await settled(stream.finalMessage())];
  },
  'an error before the stream': (client) =>
    settled(client.messages.stream(ask('', { model: 'fail-400' })).finalMessage()),
  'an error in a listener': async (client) => {
    const stream = client.messages.stream(thrice);
    stream.on('text', () => {
      throw new Error('listener');
    });
    return settled(stream.done());
  },
  'abort()': async (client) => {
    const seen: unknown[] = [];
    const stream = client.messages.stream(ask('one two', { model: 'hang-mid-stream' }));
    stream.on('abort', (error) => seen.push(told(error))).once('text', () => stream.abort());
    return [await settled(stream.done()), seen, stream.aborted];
  },
  'abort() before it has begun': async (client) => {
    const stream = client.messages.stream(thrice);
    stream.abort();
    return [await settled(stream.done()), stream.aborted];
  },
};

const runners: Record<string, Program> = {
  'tools of a runner': async (client) => {
    const inputs: unknown[] = [];
    const runner = client.beta.messages.toolRunner({ ...thrice, tools: [weather(inputs)] });
    return [(await runner).content, inputs];
  },
  'tools of a streaming runner': async (client) => {
    const inputs: unknown[] = [];
    const runner = client.beta.messages.toolRunner({ ...thrice, stream: true, tools: [weather(inputs)] });
    const seen: unknown[] = [];
    for await (const stream of runner) seen.push(await stream.finalMessage());
    return [seen, inputs];
  },
};

function weather(inputs: unknown[]) {
  return betaTool({
    name: 'weather',
    description: 'The weather of a city.',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } } } as const,
    run: (input) => {
      inputs.push(input);
      return 'rain';
    },
  });
}

const groups = {
  'a call': plain,
  'a failure': failures,
  'a stream': streams,
  'messages.stream()': messageStreams,
  runners,
};

for (const [group, programs] of Object.entries(groups)) {
  test.each(Object.entries(programs))(`${group}: %s`, async (_, program) => {
    const recorder = record();
    const bare = await observe(program, (client) => client);
    expect(recorder.runs).toEqual([]);
    const traced = await observe(program, wrapAnthropic);
    expect(traced).toEqual(bare);
    expect(recorder.runs.filter((run) => run.end_time === undefined)).toEqual([]);
  });
}

/** What a program comes to, with all that the SDK has logged meanwhile and the bodies that it has sent. */
async function observe(program: Program, prepare: (client: Anthropic) => Anthropic) {
  const before = model().requests.length;
  const logged: unknown[] = [];
  const log = (...line: unknown[]): void => void logged.push(line);
  const logger = { error: log, warn: log, info: () => {}, debug: () => {} };
  const client = makeClient(model(), { logger, logLevel: 'warn' });
  const outcome = await program(prepare(client));
  const bodies = model()
    .requests.slice(before)
    .map(({ path, text }) => [path, text]);
  return { outcome, logged, bodies };
}

/** The items that came, and the error that ended them. */
async function collected(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const seen: unknown[] = [];
  try {
    for await (const item of items) seen.push(item);
  } catch (error) {
    seen.push(told(error));
  }
  return seen;
}

async function settled(promise: PromiseLike<unknown> | undefined): Promise<unknown> {
  try {
    return { value: await promise };
  } catch (error) {
    return told(error);
  }
}

function outcomeOf(call: () => unknown): unknown {
  try {
    return { value: call() };
  } catch (error) {
    return told(error);
  }
}

function told(error: unknown) {
  const { name, message, status, error: body, requestID, cause } = error as InstanceType<typeof Anthropic.APIError>;
  return { type: (error as Error).constructor.name, name, message, status, body, requestID, cause: String(cause) };
}
