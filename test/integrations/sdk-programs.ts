// Programs that run with a bare client and with a wrapped client, each against its own server, so that the results and
// requests can be compared. Peers run the programs with other versions of an SDK.
import type Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
import type OpenAI from 'openai';
import { startLocalModel } from '../support/local-model/server.js';
import { chunksOf, lookUp, tea } from './local-openai.ts';
import { rejectionPrograms } from './rejections.ts';
import { type Client, type Context, type Helper, type Log, type Program, type Sdk, WEATHER_TOOL } from './sdks.ts';

type Programs = Readonly<Record<string, Program>>;

function errorOf(error: unknown): unknown {
  const { name, message, status, code, requestID, cause } = error as InstanceType<typeof OpenAI.APIError>;
  const type = (error as object).constructor.name;
  return { type, name, message, status, code, requestID, cause: cause === undefined ? undefined : String(cause) };
}

async function settled(log: Log, promise: PromiseLike<unknown> | undefined): Promise<void> {
  await promise?.then(
    (value) => log.push(value),
    (error) => log.push(errorOf(error)),
  );
}

/** Logs the chunks of a stream, and the error that ends it. */
async function logAll(log: Log, stream: AsyncIterable<unknown>, onChunk?: () => void): Promise<void> {
  const read = async () => {
    for await (const chunk of stream) {
      log.push(chunk);
      onChunk?.();
    }
  };
  await settled(log, read());
}

const stateOf = (response: Response): unknown => [response.status, response.bodyUsed];
const hanging = { model: 'hang-mid-stream' };

const callPrograms: Programs = {
  'an answer, with the id of its request': async ({ client, sdk, log }) => {
    const answer = (await sdk.create(client)) as { _request_id: unknown };
    log.push(answer, answer._request_id, Object.keys(answer));
  },
  'the promise of a call': async ({ client, sdk, log }) => {
    const promise = sdk.create(client);
    log.push(promise.constructor.name, promise instanceof Promise, Object.keys(promise), promise.then.length);
    log.push(Object.hasOwn(promise, 'then'), String(promise), await promise);
    log.push(log.at(-1) === (await promise));
  },
  withResponse: async ({ client, sdk, log }) => {
    const { data, response, request_id } = await sdk.create(client).withResponse();
    log.push(data, stateOf(response), request_id);
    const { data: stream } = await sdk.stream(client).withResponse();
    log.push(Object.keys(stream as object), await chunksOf(stream as AsyncIterable<unknown>));
  },
  asResponse: async ({ client, sdk, log }) => {
    const response = await sdk.create(client).asResponse();
    log.push(stateOf(response), await response.json(), response.bodyUsed);
    log.push(await (await sdk.stream(client).asResponse()).text());
  },
  'asResponse and the answer': async ({ client, sdk, log }) => {
    const [one, two] = [sdk.create(client), sdk.create(client)];
    log.push(stateOf(await one.asResponse()), await one, await Promise.all([two.asResponse().then(stateOf), two]));
  },
  'catch and finally': async ({ client, sdk, log }) => {
    const failing = () => sdk.create(client, { model: 'fail-400' });
    const onFinally = () => log.push('finally');
    log.push(await failing().catch(errorOf), await failing().finally(onFinally).catch(errorOf));
    log.push(await sdk.create(client).finally(onFinally));
  },
  'an answer that nobody requests': async ({ client, sdk, log, model }) => {
    sdk.create(client);
    while (model.requests.length === 0) await new Promise(setImmediate);
    log.push(await model.requests[0]?.closed);
  },
  'errors of every status': async ({ client, sdk, log }) => {
    const statuses = [400, 401, 403, 404, 422].map((status) => ({ model: `fail-${status}` }));
    for (const body of [...statuses, { model: 'malformed' }]) await settled(log, sdk.create(client, body));
    for (const body of statuses) {
      await settled(log, sdk.stream(client, body));
      await settled(log, sdk.parse(client, body));
      await settled(log, sdk.create(client, body).withResponse());
      await settled(log, sdk.create(client, body).asResponse());
    }
  },
  retries: async ({ client, sdk, log }) => {
    await settled(log, sdk.create(client, { model: 'fail-429-once' }, { maxRetries: 2 }));
    for (const maxRetries of [1, 0]) await settled(log, sdk.create(client, { model: 'fail-500' }, { maxRetries }));
  },
  'the identity of an error': async ({ client, sdk, log }) => {
    const promise = sdk.create(client, { model: 'fail-401' });
    const error = await promise.catch((thrown: unknown) => thrown);
    const { AuthenticationError } = client.constructor as unknown as typeof OpenAI;
    log.push(error instanceof AuthenticationError, error === (await promise.catch((thrown: unknown) => thrown)));
  },
  'no server, and a deadline': async ({ client, sdk, log }) => {
    const refused = client.withOptions({ baseURL: 'http://127.0.0.1:1', maxRetries: 0 });
    await settled(log, sdk.create(refused));
    // No request is sent, so that the deadline does not depend on the speed of a server.
    const fetch = (_: unknown, { signal }: RequestInit = {}) =>
      new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    await settled(log, sdk.create(client.withOptions({ fetch, maxRetries: 0 }), {}, { timeout: 5 }));
  },
  'signals that abort before the call and before the answer': async ({ client, sdk, log, model }) => {
    await settled(log, sdk.create(client, {}, { signal: AbortSignal.abort() }));
    const controller = new AbortController();
    const pending = sdk.create(client, { model: 'hang' }, { signal: controller.signal });
    while (model.requests.length === 0) await new Promise(setImmediate);
    controller.abort();
    await settled(log, pending);
  },
  'wrong arguments, and the methods': async ({ client, sdk, log }) => {
    const owner = sdk.resource.reduce<object>((object, key) => Reflect.get(object, key), client);
    const create = Reflect.get(owner, 'create') as (...args: unknown[]) => PromiseLike<unknown>;
    for (const call of [() => create({ ...hanging }), () => Reflect.apply(create, owner, [])]) {
      try {
        // Some versions throw at once, others return a promise that rejects.
        await settled(log, call());
      } catch (error) {
        log.push(errorOf(error));
      }
    }
    log.push(create.name, create.length, Object.keys(client), Object.keys(owner), client.withOptions.name);
  },
  'a client with other options': async ({ client, sdk, log }) => {
    const other = client.withOptions({ maxRetries: 1, defaultHeaders: { 'x-test': 'a' } });
    log.push(other.constructor === client.constructor, (other as { maxRetries?: number }).maxRetries);
    log.push(await sdk.create(other));
  },
  'many calls at once': async ({ client, sdk, log }) => {
    const answers = Array.from({ length: 20 }, async (_, at) => {
      const messages = [{ role: 'user', content: `number ${at}` }];
      return JSON.stringify(await chunksOf(await sdk.stream(client, { messages })))
        .match(/number|\d+/g)
        ?.filter((word) => word === 'number' || word === `${at}`);
    });
    log.push(await Promise.all(answers));
  },
};

const streamPrograms: Programs = {
  'a stream, twice': async ({ client, sdk, log }) => {
    const stream = await sdk.stream(client);
    log.push(stream.constructor.name, Object.keys(stream));
    await logAll(log, stream);
    log.push(stream.controller.signal.aborted);
    await logAll(log, stream);
  },
  'a stream that is left': async ({ client, sdk, log, model }) => {
    const stream = await sdk.stream(client, hanging);
    for await (const chunk of stream) {
      log.push(chunk);
      break;
    }
    log.push(stream.controller.signal.aborted, await model.requests[0]?.closed);
    await logAll(log, stream);
  },
  'a stream whose reader throws': async ({ client, sdk, log, model }) => {
    const stream = await sdk.stream(client, hanging);
    const read = async () => {
      for await (const _ of stream) throw new RangeError('mine');
    };
    await settled(log, read());
    log.push(stream.controller.signal.aborted, await model.requests[0]?.closed);
  },
  'a stream that is aborted by its controller': async ({ client, sdk, log }) => {
    const stream = await sdk.stream(client, hanging);
    await logAll(log, stream, () => log.length === 3 && setImmediate(() => stream.controller.abort()));
  },
  'a stream that is aborted by a signal': async ({ client, sdk, log }) => {
    const controller = new AbortController();
    const stream = await sdk.stream(client, hanging, { signal: controller.signal });
    await logAll(log, stream, () => log.length === 3 && controller.abort());
  },
  'a stream that is never read': async ({ client, sdk, log }) => {
    log.push((await sdk.stream(client)).controller.signal.aborted);
  },
  'the steps of an iterator': async ({ client, sdk, log }) => {
    const iterator = (await sdk.stream(client))[Symbol.asyncIterator]();
    log.push(await Promise.all([iterator.next(), iterator.next()]), await iterator.return?.(), await iterator.next());
    log.push(String(iterator));
    const other = (await sdk.stream(client))[Symbol.asyncIterator]();
    log.push(await Promise.all([other.next(), other.return?.(), other.next()]));
  },
  'an error that is thrown into an iterator': async ({ client, sdk, log }) => {
    const iterator = (await sdk.stream(client))[Symbol.asyncIterator]();
    log.push(await iterator.next());
    await settled(log, iterator.throw?.(new Error('mine')));
    log.push(await iterator.next());
  },
  'an iterator that is closed before its first step': async ({ client, sdk, log }) => {
    const stream = await sdk.stream(client);
    const iterator = stream[Symbol.asyncIterator]();
    log.push(await iterator.return?.(), await iterator.next(), stream.controller.signal.aborted);
    await logAll(log, stream);
  },
  tee: async ({ client, sdk, log }) => {
    const [left, right] = (await sdk.stream(client)).tee();
    log.push(await chunksOf(left), await chunksOf(right), left.constructor.name);
  },
  'toReadableStream, read and cancelled': async ({ client, sdk, log, model }) => {
    log.push(await new Response((await sdk.stream(client)).toReadableStream()).text());
    const stream = await sdk.stream(client, hanging);
    const reader = stream.toReadableStream().getReader();
    log.push((await reader.read()).done);
    await reader.cancel();
    log.push(stream.controller.signal.aborted, await model.requests[1]?.closed);
  },
  'streams that fail': async ({ client, sdk, log }) => {
    for (const model of ['fail-mid-stream', 'malformed', 'drop-mid-stream']) {
      const stream = await sdk.stream(client, { model });
      await logAll(log, stream);
      log.push(stream.controller.signal.aborted);
    }
  },
};

function logEvents(log: Log, helper: Helper, ...events: string[]): Helper {
  for (const event of events) {
    helper.on(event, (...args) => log.push([event, ...args.map((arg) => (arg instanceof Error ? errorOf(arg) : arg))]));
  }
  return helper;
}

const helperPrograms: Programs = {
  'a helper, iterated and left': async ({ client, sdk, log }) => {
    await logAll(log, sdk.helper(client));
    const helper = sdk.helper(client);
    for await (const event of helper) {
      log.push(event);
      break;
    }
    log.push(helper.controller.signal.aborted);
    await settled(log, helper.done());
  },
  'a helper, as a readable stream': async ({ client, sdk, log }) => {
    log.push(await new Response(sdk.helper(client).toReadableStream()).text());
  },
  'a helper that is aborted': async ({ client, sdk, log, model }) => {
    const helper = logEvents(log, sdk.helper(client, hanging), 'abort', 'end');
    helper.once(sdk.textEvent, () => helper.abort());
    await settled(log, helper.done());
    log.push(await model.requests[0]?.closed);
    const early = sdk.helper(client);
    early.abort();
    await settled(log, early.done());
  },
  'a helper that fails': async ({ client, sdk, log }) => {
    for (const model of ['fail-mid-stream', 'fail-400']) {
      await settled(log, logEvents(log, sdk.helper(client, { model }), 'error', 'end').done());
    }
    const thrower = sdk.helper(client).on(sdk.textEvent, () => {
      throw new Error('listener');
    });
    await settled(log, thrower.done());
  },
};

const format = { name: 'dish', schema: { type: 'object', properties: { dish: { type: 'string' } } }, strict: true };

const openaiOf = ({ client }: Context) => client as unknown as OpenAI;
const openaiPrograms: Programs = {
  'parse, and derived promises': async (context) => {
    const { chat, responses } = openaiOf(context);
    const body = {
      model: 'small',
      messages: tea,
      response_format: { type: 'json_schema' as const, json_schema: format },
    };
    const promise = chat.completions.parse(body);
    const { data, request_id } = await chat.completions.parse(body).withResponse();
    context.log.push(promise.constructor.name, await promise, data, request_id);
    const text = { format: { type: 'json_schema' as const, ...format } };
    context.log.push(await responses.parse({ model: 'small', input: 'tea', text }));
    await settled(context.log, responses.parse({ model: 'malformed', input: 'tea' }));
    await settled(context.log, chat.completions.parse({ ...body, model: 'fail-401' }).asResponse());
    const response = await chat.completions.parse(body).asResponse();
    context.log.push(stateOf(response), await response.json());
  },
  'events of completion and response streams': async (context) => {
    const { chat, responses } = openaiOf(context);
    const stream = chat.completions.stream({ model: 'small', messages: tea, tools: [lookUp] });
    logEvents(context.log, stream as never, 'connect', 'content', 'message', 'functionToolCall', 'end');
    context.log.push(await stream.finalChatCompletion(), await stream.totalUsage().catch(errorOf));
    const response = responses.stream({ model: 'small', input: 'tea' });
    logEvents(context.log, response as never, 'response.output_text.delta');
    context.log.push(await response.finalResponse());
  },
  runTools: async (context) => {
    const own = { description: '', parse: JSON.parse, function: (given: unknown) => ({ given }) };
    const tools = [{ ...lookUp, function: { ...lookUp.function, ...own } }];
    const runner = openaiOf(context).chat.completions.runTools({ model: 'small', messages: tea, tools });
    logEvents(context.log, runner as never, 'message', 'functionToolCallResult');
    context.log.push(await runner.finalContent(), runner.messages, await runner.totalUsage());
  },
  'embeddings, completions and images': async (context) => {
    const { embeddings, completions, images } = openaiOf(context);
    const input = { model: 'small', input: 'tea' };
    const prompt = { model: 'small', prompt: 'tea' };
    context.log.push(await embeddings.create(input));
    context.log.push(await embeddings.create({ ...input, encoding_format: 'float' }).withResponse());
    context.log.push(await completions.create(prompt), await images.generate(prompt));
    context.log.push(await chunksOf(await images.generate({ ...prompt, stream: true })));
  },
};

const anthropicOf = ({ client }: Context) => client as unknown as Anthropic;
const question = { model: 'small', max_tokens: 100, messages: [{ role: 'user' as const, content: 'one two three' }] };
const weatherTool = (inputs: unknown[]) =>
  betaTool({
    name: 'weather',
    description: 'The weather of a city.',
    inputSchema: { type: 'object', properties: { city: { type: 'string' } } } as const,
    run: (input) => {
      inputs.push(input);
      return 'rain';
    },
  });
const anthropicPrograms: Programs = {
  'thinking, tools, parse and the beta resource': async (context) => {
    const { messages, beta } = anthropicOf(context);
    const { log } = context;
    log.push(await messages.create({ ...question, thinking: { type: 'enabled', budget_tokens: 1024 } }));
    log.push(await chunksOf(await messages.create({ ...question, tools: [WEATHER_TOOL], stream: true })));
    const json = jsonSchemaOutputFormat({ type: 'object', properties: {}, additionalProperties: true } as const, {
      transform: false,
    });
    const output_config = { format: { ...json, parse: (content: string) => ({ content }) } };
    const asked = [{ role: 'user' as const, content: '{}' }];
    log.push((await messages.parse({ ...question, messages: asked, tools: [], output_config })).parsed_output);
    log.push(await beta.messages.create(question));
    log.push(await chunksOf(await beta.messages.create({ ...question, stream: true })));
    log.push(await beta.messages.stream(question).finalMessage());
    await settled(log, messages.countTokens(question));
  },
  'events and state of a message stream': async (context) => {
    const { messages } = anthropicOf(context);
    const stream = messages.stream({ ...question, tools: [WEATHER_TOOL] });
    const events = ['streamEvent', 'text', 'inputJson', 'contentBlock', 'message', 'finalMessage', 'end'];
    for (const event of events)
      stream.on(event as 'text', (...args) => context.log.push([event, structuredClone(args)]));
    context.log.push(stream.constructor.name, await stream.finalMessage(), await stream.finalText());
    context.log.push(stream.ended, stream.errored, stream.aborted, stream.request_id, stream.receivedMessages);
    const other = messages.stream(question);
    const { data, response, request_id } = await other.withResponse();
    await other.done();
    context.log.push(data === other, stateOf(response), request_id);
  },
  'tool runners': async (context) => {
    const { messages } = anthropicOf(context).beta;
    const tools = [weatherTool(context.log)];
    context.log.push((await messages.toolRunner({ ...question, tools })).content);
    const runner = messages.toolRunner({ ...question, stream: true, tools });
    for await (const stream of runner) context.log.push(await stream.finalMessage());
  },
  'a parameter that the SDK refuses': (context) => {
    try {
      anthropicOf(context).messages.create({ ...question, max_tokens: 10_000_000 });
    } catch (error) {
      context.log.push(errorOf(error));
    }
  },
};

const common: Programs = { ...callPrograms, ...streamPrograms, ...helperPrograms, ...rejectionPrograms };

/** The programs of each SDK, by the function that wraps its clients. */
export const programs: Readonly<Record<string, Programs>> = {
  wrapOpenAI: { ...common, ...openaiPrograms },
  wrapAnthropic: { ...common, ...anthropicPrograms },
};

/** Programs that leave a run open. Such a run ends after its promise or stream is collected. */
export const leftOpen: ReadonlySet<string> = new Set(['an answer that nobody requests', 'a stream that is never read']);

/** Runs a program and returns its log, the log of the SDK, and the requests of the server. */
export async function seenBy(program: Program, sdk: Sdk, prepare: (client: Client) => Client) {
  const model = await startLocalModel();
  const log: Log = [];
  const logged: unknown[] = [];
  const add = (...line: unknown[]): void => void logged.push(line);
  const logger = { error: add, warn: add, info: () => {}, debug: () => {} };
  try {
    await program({ client: prepare(sdk.make(model, { logger, logLevel: 'warn' })), sdk, log, model });
  } finally {
    await model.close();
  }
  // The port may be one to which an exporter of an earlier test still sends its runs.
  const own = model.requests.filter(({ path }) => path !== '/runs/multipart');
  const requests = own.map(({ path, headers, body }) => {
    const { host: _, ...rest } = headers;
    return JSON.stringify({ path, headers: rest, body });
  });
  return { log: comparable(log), logged: comparable(logged), requests: requests.sort() };
}

/** A response of `fetch` has the port of its server. */
function comparable(value: unknown): unknown[] {
  const text = JSON.stringify(value, (_, item) => (item instanceof Response ? stateOf(item) : item));
  return JSON.parse(text.replaceAll(/127\.0\.0\.1:\d+/g, 'host'));
}
