// Programs to run with a bare client and with a wrapped one, of any version of the SDK, each against a server of its own;
// what they saw and what the servers saw can be compared.
import type OpenAI from 'openai';
import { type LocalModel, startLocalModel } from '../../examples/local-model/server.js';
import { chunksOf, lookUp, tea } from './local-openai.ts';

/** What a program saw, in the order in which it saw it. */
type Log = unknown[];
export type Program = (client: OpenAI, log: Log, model: LocalModel) => unknown;

const ask = { model: 'small', messages: tea };
const streamed = { ...ask, stream: true as const };

const errorOf = (error: unknown): unknown => {
  const { name, message, status, code, requestID, cause } = error as InstanceType<typeof OpenAI.APIError>;
  const type = (error as object).constructor.name;
  return { type, name, message, status, code, requestID, cause: cause === undefined ? undefined : String(cause) };
};

/** Keeps what a call comes to, or the error that it ends with. */
const told = async (log: Log, promise: PromiseLike<unknown>): Promise<void> => {
  await promise.then(
    (value) => log.push(value),
    (error) => log.push(errorOf(error)),
  );
};

const headersOf = (response: Response): unknown => [
  response.status,
  response.headers.get('x-request-id'),
  response.bodyUsed,
];

export const programs: Readonly<Record<string, Program>> = {
  'an answer, with the id of its request': async (client, log) => {
    const answer = await client.chat.completions.create(ask);
    log.push(answer, answer._request_id, Object.keys(answer));
  },
  'the promise of a call': async (client, log) => {
    const promise = client.chat.completions.create(ask);
    log.push(promise.constructor.name, promise instanceof Promise, Object.keys(promise), promise.then.length);
    const [first, second] = [await promise, await promise];
    log.push(String(promise), first === second);
  },
  withResponse: async (client, log) => {
    const { data, response, request_id } = await client.chat.completions.create(ask).withResponse();
    log.push(data, headersOf(response), request_id);
  },
  'asResponse, whose body is the caller’s': async (client, log) => {
    const response = await client.chat.completions.create(ask).asResponse();
    log.push(headersOf(response), await response.json(), response.bodyUsed);
  },
  'asResponse, and the answer after it': async (client, log) => {
    const promise = client.chat.completions.create(ask);
    log.push(headersOf(await promise.asResponse()), await promise);
  },
  'asResponse and the answer at once': async (client, log) => {
    const promise = client.chat.completions.create(ask);
    const [response, answer] = await Promise.all([promise.asResponse(), promise]);
    log.push(headersOf(response), answer);
  },
  'asResponse of a stream': async (client, log) => {
    log.push(await (await client.chat.completions.create(streamed).asResponse()).text());
  },
  'catch and finally, which go past then': async (client, log) => {
    const failing = () => client.chat.completions.create({ ...ask, model: 'fail-401' });
    log.push(await failing().catch(errorOf));
    log.push(
      await failing()
        .finally(() => log.push('finally'))
        .catch(errorOf),
    );
    log.push(await client.chat.completions.create(ask).finally(() => log.push('finally')));
  },
  'parse, and what is derived from it': async (client, log) => {
    const schema = { type: 'object', properties: { dish: { type: 'string' } } };
    const format = { type: 'json_schema' as const, json_schema: { name: 'dish', schema, strict: true } };
    const promise = client.chat.completions.parse({ ...ask, response_format: format });
    log.push(promise.constructor.name, await promise);
    const { data, request_id } = await client.chat.completions
      .parse({ ...ask, response_format: format })
      .withResponse();
    log.push(data, request_id);
    log.push(headersOf(await client.chat.completions.parse(ask).asResponse()));
    const text = { format: { type: 'json_schema' as const, name: 'dish', schema, strict: true } };
    log.push(await client.responses.parse({ model: 'small', input: 'tea', text }));
  },
  'parse that fails': async (client, log) => {
    await told(log, client.chat.completions.parse({ ...ask, model: 'fail-401' }));
    await told(log, client.responses.parse({ model: 'malformed', input: 'tea' }));
    await told(log, client.chat.completions.parse({ ...ask, model: 'fail-401' }).asResponse());
  },
  'an answer that nobody asked for': async (client, log, model) => {
    client.chat.completions.create(ask);
    while (model.requests.length === 0) await new Promise(setImmediate);
    log.push(await model.requests[0]?.closed);
  },
  ...Object.fromEntries(
    [400, 401, 403, 404, 422].map((status): [string, Program] => [
      `the error of status ${status}`,
      (client, log) => told(log, client.chat.completions.create({ ...ask, model: `fail-${status}` })),
    ]),
  ),
  'errors that are tried again': async (client, log) => {
    await told(log, client.chat.completions.create({ ...ask, model: 'fail-429-once' }));
    await told(log, client.chat.completions.create({ ...ask, model: 'fail-500' }));
    await told(log, client.chat.completions.create({ ...ask, model: 'fail-500' }, { maxRetries: 0 }));
  },
  'the class and the identity of an error': async (client, log) => {
    const promise = client.chat.completions.create({ ...ask, model: 'fail-401' });
    const first = await promise.catch((error) => error);
    const { AuthenticationError } = client.constructor as typeof OpenAI;
    log.push(first instanceof AuthenticationError, first === (await promise.catch((error) => error)));
  },
  'a body that is no JSON': (client, log) => told(log, client.chat.completions.create({ ...ask, model: 'malformed' })),
  'a server that is not there': (client, log) =>
    told(log, client.chat.completions.create(ask, { maxRetries: 0, path: 'http://127.0.0.1:1/' })),
  'a deadline': (client, log) => {
    // Nothing is sent, so that it does not matter how far a request would come in the time.
    const fetch = (_: unknown, { signal }: RequestInit = {}) =>
      new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    return told(log, client.withOptions({ fetch }).chat.completions.create(ask, { timeout: 5, maxRetries: 0 }));
  },
  'a signal that aborts before, and while the answer is waited for': async (client, log, model) => {
    await told(log, client.chat.completions.create(ask, { signal: AbortSignal.abort() }));
    const controller = new AbortController();
    const pending = client.chat.completions.create({ ...ask, model: 'hang' }, { signal: controller.signal });
    while (model.requests.length === 0) await new Promise(setImmediate);
    controller.abort();
    await told(log, pending);
  },
  'wrong arguments': async (client, log) => {
    const { create } = client.chat.completions as { create: (...args: unknown[]) => unknown };
    for (const call of [() => create(ask), () => create.call(client.chat.completions)]) {
      try {
        // The sixth throws at once where the seventh gives a promise that rejects.
        await told(log, call() as PromiseLike<unknown>);
      } catch (error) {
        log.push(errorOf(error));
      }
    }
    log.push(client.chat.completions.create.name, client.chat.completions.create.length);
    log.push(Object.keys(client), Object.keys(client.chat.completions));
  },
  'a stream, chunk by chunk': async (client, log) => {
    const stream = await client.chat.completions.create(streamed);
    log.push(
      stream.constructor.name,
      Object.keys(stream),
      ...(await chunksOf(stream)),
      stream.controller.signal.aborted,
    );
  },
  'a stream that is read again': async (client, log) => {
    const stream = await client.chat.completions.create(streamed);
    await chunksOf(stream);
    await told(log, chunksOf(stream));
  },
  'a stream that is left': async (client, log, model) => {
    const stream = await client.chat.completions.create({ ...streamed, model: 'hang-mid-stream' });
    for await (const chunk of stream) {
      log.push(chunk);
      break;
    }
    log.push(stream.controller.signal.aborted, await model.requests[0]?.closed);
    await told(log, chunksOf(stream));
  },
  'a stream whose reader throws': async (client, log, model) => {
    const stream = await client.chat.completions.create({ ...streamed, model: 'hang-mid-stream' });
    const read = async () => {
      for await (const _ of stream) throw new RangeError('mine');
    };
    await told(log, read());
    log.push(stream.controller.signal.aborted, await model.requests[0]?.closed);
  },
  'a stream that is aborted': async (client, log, model) => {
    const stream = await client.chat.completions.create({ ...streamed, model: 'hang-mid-stream' });
    for await (const chunk of stream) {
      log.push(chunk);
      if (log.length === 3) setImmediate(() => stream.controller.abort());
    }
    log.push(await model.requests[0]?.closed);
  },
  'a stream that is never read': async (client, log) => {
    const stream = await client.chat.completions.create(streamed);
    log.push(stream.controller.signal.aborted);
  },
  'the steps of a stream, by hand and at once': async (client, log) => {
    const iterator = (await client.chat.completions.create(streamed))[Symbol.asyncIterator]();
    log.push(await Promise.all([iterator.next(), iterator.next()]), await iterator.return?.(), await iterator.next());
    log.push(String(iterator));
  },
  'an iteration that is closed before it began': async (client, log) => {
    const stream = await client.chat.completions.create(streamed);
    log.push(await stream[Symbol.asyncIterator]().return?.(), stream.controller.signal.aborted);
    log.push((await chunksOf(stream)).length);
  },
  tee: async (client, log) => {
    const [left, right] = (await client.chat.completions.create(streamed)).tee();
    log.push(await chunksOf(left), await chunksOf(right), left?.constructor.name);
  },
  'toReadableStream, read and cancelled': async (client, log, model) => {
    log.push(await new Response((await client.chat.completions.create(streamed)).toReadableStream()).text());
    const stream = await client.chat.completions.create({ ...streamed, model: 'hang-mid-stream' });
    const reader = stream.toReadableStream().getReader();
    await reader.read();
    await reader.cancel();
    log.push(stream.controller.signal.aborted, await model.requests[1]?.closed);
  },
  ...Object.fromEntries(
    ['fail-mid-stream', 'malformed', 'drop-mid-stream'].map((model): [string, Program] => [
      `a stream that breaks: ${model}`,
      async (client, log) => {
        const stream = await client.chat.completions.create({ ...streamed, model });
        const read = async () => {
          for await (const chunk of stream) log.push(chunk);
        };
        await told(log, read());
        log.push(stream.controller.signal.aborted);
      },
    ]),
  ),
  'events of a completion stream': async (client, log) => {
    const stream = client.chat.completions.stream({ ...ask, tools: [lookUp] });
    for (const event of ['connect', 'content', 'message', 'functionToolCall', 'end'] as const) {
      stream.on(event, (...args: unknown[]) => log.push([event, ...args]));
    }
    log.push(await stream.finalChatCompletion(), await stream.totalUsage().catch(errorOf));
  },
  'a completion stream that is iterated, and one that is aborted': async (client, log, model) => {
    for await (const chunk of client.chat.completions.stream(ask)) log.push(chunk);
    const stream = client.chat.completions.stream({ ...ask, model: 'hang-mid-stream' });
    stream.on('content', () => stream.abort());
    stream.on('abort', (error) => log.push(errorOf(error)));
    await told(log, stream.done());
    log.push(await model.requests[1]?.closed);
  },
  'events of a response stream': async (client, log) => {
    const stream = client.responses.stream({ model: 'small', input: 'tea' });
    stream.on('response.output_text.delta', (event) => log.push(event));
    log.push(await stream.finalResponse());
  },
  runTools: async (client, log) => {
    const own = { description: '', parse: JSON.parse, function: (given: unknown) => ({ given }) };
    const tools = [{ ...lookUp, function: { ...lookUp.function, ...own } }];
    const runner = client.chat.completions.runTools({ ...ask, tools });
    for (const event of ['message', 'functionToolCallResult'] as const) {
      runner.on(event, (...args: unknown[]) => log.push([event, ...args]));
    }
    log.push(await runner.finalContent(), runner.messages, await runner.totalUsage());
  },
  'embeddings, completions, images': async (client, log) => {
    log.push(await client.embeddings.create({ model: 'small', input: 'tea' }));
    log.push(await client.embeddings.create({ model: 'small', input: 'tea', encoding_format: 'float' }).withResponse());
    log.push(await client.completions.create({ model: 'small', prompt: 'tea' }));
    log.push(await client.images.generate({ model: 'small', prompt: 'tea' }));
    log.push(await chunksOf(await client.images.generate({ model: 'small', prompt: 'tea', stream: true })));
  },
  'many calls at once': async (client, log) => {
    const contents = Array.from({ length: 20 }, (_, at) => `number ${at}`);
    const answers = await Promise.all(
      contents.map(async (content) => {
        const stream = await client.chat.completions.create({ ...streamed, messages: [{ role: 'user', content }] });
        return (await chunksOf(stream)).map(({ choices }) => choices[0]?.delta.content ?? '').join('');
      }),
    );
    log.push(answers);
  },
};

/** Answers that nobody reads end their runs when they are collected. */
export const leftOpen: ReadonlySet<string> = new Set([
  'an answer that nobody asked for',
  'a stream that is never read',
]);

/** What a program and its server saw, with the client that is made for that server. */
export async function seenBy(program: Program, makeClient: (model: LocalModel) => OpenAI) {
  const model = await startLocalModel();
  const log: Log = [];
  try {
    await program(makeClient(model), log, model);
  } finally {
    await model.close();
  }
  const requests = model.requests.map(({ path, headers, body }) => {
    const { host: _, ...rest } = headers;
    return { path, headers: rest, body };
  });
  return { log: log.map(comparable), requests: requests.sort((a, b) => compare(a.body, b.body)) };
}

/** Responses of `fetch` say where they came from. */
function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, item) => (item instanceof Response ? headersOf(item) : item)) ?? 'null');
}

const compare = (a: unknown, b: unknown): number => JSON.stringify(a).localeCompare(JSON.stringify(b));
