// What holds for the clients of every SDK: options, derived clients, values that are not clients, and unwrapping.
import { describe, expect, test } from 'vitest';
import type { WrapOptions } from '#src/index.ts';
import { traceable } from '#src/instrument/traceable.ts';
import { recordRuns } from '#src/testing/record-runs.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { makeSink } from '../run/memory-sink.ts';
import { logLines } from '../support/log-lines.ts';
import { chunksOf, localModel } from './local-openai.ts';
import { type Call, type Client, type Sdk, sdks } from './sdks.ts';

describe.each(sdks)('a wrapped client of %s', (_, sdk) => {
  const makeWrapped = async (options?: WrapOptions) => sdk.wrap(sdk.make(await localModel()), options);
  const resourceOf = (client: Client): Record<string, unknown> =>
    sdk.resource.reduce<Record<string, unknown>>((owner, key) => owner[key] as typeof owner, client as never);

  test('records calls below the current run, and runs below each call', async () => {
    const recorder = record();
    const fetch = traceable(globalThis.fetch, { name: 'fetch', inputs: () => ({}), outputs: () => ({}) });
    const client = sdk.wrap(sdk.make(await localModel(), { fetch }), { metadata: { team: 'a' } });
    const after = traceable(() => 1, { name: 'after' });
    const answer = traceable(() => sdk.create(client).then(after), { name: 'answer' });
    await Promise.all([answer(), answer()]);
    const roots = recorder.runs.filter((run) => run.parent_run_id === undefined);
    expect(roots).toHaveLength(2);
    for (const { id } of roots) expect(treeOf(recorder.runs, id)).toEqual({ [sdk.runName]: { fetch: {} }, after: {} });
    const metadataOf = (name: string) => recorder.runs.find((run) => run.name === name)?.extra?.metadata;
    expect(metadataOf(sdk.runName)).toMatchObject({ team: 'a', ls_provider: sdk.provider, ls_model_name: 'small' });
    expect(metadataOf('fetch')).toEqual({ team: 'a' });
  });

  test('uses its options, also for clients that withOptions derives', async () => {
    const recorder = recordRuns();
    recorder.stop();
    const metadata = { team: 'b', ls_provider: 'ours' };
    const options = { name: 'ask', tags: ['a'], metadata, project: 'c', exporter: recorder.exporter, hideInputs: true };
    const client = await makeWrapped(options);
    const derived = client.withOptions({ maxRetries: 3 });
    expect(derived.constructor).toBe(client.constructor);
    expect(derived).toMatchObject({ maxRetries: 3 });
    for (const one of [client, derived, derived.withOptions({})]) await sdk.create(one);
    expect(recorder.runs).toHaveLength(3);
    for (const run of recorder.runs) {
      expect(run).toMatchObject({ name: 'ask', tags: ['a'], session_name: 'c', extra: { metadata } });
      expect(run.inputs).toEqual({});
      expect(run.extra?.metadata).toMatchObject({ ls_model_name: 'small' });
    }
  });

  test('records no text if inputs and outputs are hidden', async () => {
    const sink = makeSink({ hideInputs: true, hideOutputs: true });
    const client = await makeWrapped({ exporter: sink });
    await sdk.create(client);
    await chunksOf(await sdk.stream(client));
    expect(sink.ended).toHaveLength(2);
    expect(JSON.stringify(sink.records())).not.toMatch(/tea/);
    expect(sink.records()[0]?.extra?.metadata).toMatchObject({ usage_metadata: { output_tokens: 5 } });
  });

  test('does not change promises while tracing is off', async () => {
    const model = await localModel();
    const [bare, wrapped] = [sdk.make(model), sdk.wrap(sdk.make(model))].map((client) => sdk.create(client));
    expect(Reflect.ownKeys(wrapped ?? {})).toEqual(Reflect.ownKeys(bare ?? {}));
    expect(Object.keys((await wrapped) as object)).toEqual(Object.keys((await bare) as object));
    expect((await chunksOf(await sdk.stream(sdk.wrap(sdk.make(model))))).length).toBeGreaterThan(5);
  });

  test('is not traced if it is frozen, and one line is logged for each method', async () => {
    const lines = logLines();
    const recorder = record();
    const client = sdk.make(await localModel());
    Object.freeze(resourceOf(client));
    await sdk.create(sdk.wrap(client));
    expect(recorder.runs).toEqual([]);
    const paths = sdk.methods.map((method) => [...sdk.resource, method].join('.'));
    expect(lines).toEqual(
      paths.map(
        (path) =>
          `warn: ${sdk.place}: expected \`${path}\` to be a method that can be replaced; the method is not traced.`,
      ),
    );
  });

  const untraced = ({ place, expected }: Sdk, got: string) =>
    `warn: ${place}: expected ${expected}, got ${got}; the value is not traced.`;
  const unreadable = Object.defineProperty({}, sdk.resource[0] as string, {
    get: () => {
      throw new Error('unreadable');
    },
  });
  test.each<[string, unknown, string]>([
    ['undefined', undefined, untraced(sdk, 'undefined')],
    ['null', null, untraced(sdk, 'null')],
    ['text', 'client', untraced(sdk, 'string')],
    ['an object', {}, untraced(sdk, 'another object')],
    ['a resource without create', { messages: {}, chat: { completions: {} } }, untraced(sdk, 'another object')],
    ['unreadable', unreadable, `warn: ${sdk.place} failed, the application is not affected: unreadable`],
  ])('must be a client: %s is returned unchanged, and one line is logged', (_, given, line) => {
    const lines = logLines();
    for (let time = 0; time < 2; time++) expect(sdk.wrap(given as Client)).toBe(given);
    expect(sdk.unwrap(given as Client)).toBe(given);
    expect(lines).toEqual([line]);
  });

  test('has its original methods after it is unwrapped, while open runs still end', async () => {
    const recorder = record();
    const client = await makeWrapped();
    const stream = await sdk.stream(client);
    expect(sdk.unwrap(client)).toBe(client);
    expect(Object.hasOwn(resourceOf(client), 'create')).toBe(false);
    expect(Object.hasOwn(client, 'withOptions')).toBe(false);
    await chunksOf(stream);
    await sdk.create(client);
    await sdk.create(client.withOptions({}));
    expect(recorder.runs).toMatchObject([{ end_time: expect.any(String) }]);
    await sdk.create(sdk.wrap(client));
    expect(recorder.runs).toHaveLength(2);
  });

  test('keeps a method that the application has replaced since', async () => {
    const recorder = record();
    const client = await makeWrapped();
    const resource = resourceOf(client);
    const { create } = resource;
    const own = (...args: unknown[]): unknown => Reflect.apply(create as () => unknown, resource, args);
    resource.create = own;
    sdk.unwrap(client);
    expect(resource.create).toBe(own);
    await sdk.create(sdk.wrap(client));
    expect(resource.create).toBe(own);
    expect(recorder.runs).toMatchObject([{ end_time: expect.any(String) }]);
  });
});

describe.each(sdks)('a call of %s', (_, sdk) => {
  test.each<[string, (client: Client) => Promise<unknown>, object]>([
    ['withResponse', (client) => sdk.create(client).withResponse(), { usage_metadata: { output_tokens: 5 } }],
    [
      'asResponse and the answer',
      (client) => {
        const call = sdk.create(client);
        return Promise.all([call.asResponse(), call]);
      },
      { usage_metadata: { output_tokens: 5 } },
    ],
    ...(['json', 'text', 'arrayBuffer'] as const).map(
      (method): [string, (client: Client) => Promise<unknown>, object] => [
        `${method}() of asResponse`,
        async (client) => (await sdk.create(client).asResponse())[method](),
        { usage_metadata: { output_tokens: 5 } },
      ],
    ),
    [
      'asResponse and the answer after it',
      async (client) => {
        const call = sdk.create(client);
        await call.asResponse();
        return call;
      },
      { usage_metadata: { output_tokens: 5 } },
    ],
    [
      'leaving the body of asResponse',
      async (client) => (await sdk.create(client).asResponse()).body?.cancel(),
      { status: 200 },
    ],
  ])('ends by way of %s', async (_, take, outputs) => {
    const recorder = record();
    await take(sdk.wrap(sdk.make(await localModel())));
    expect(recorder.runs).toMatchObject([
      { outputs, end_time: expect.any(String), extra: { metadata: { request_id: expect.stringMatching(/^req_/) } } },
    ]);
  });

  /** Returns a wrapped client. `replace` replaced the promises of the SDK before the client was wrapped. */
  const makePatched = async (replace: (promise: Promise<unknown>) => unknown): Promise<Client> => {
    const client = sdk.make(await localModel());
    const resource = sdk.resource.reduce<Record<string, unknown>>((owner, key) => owner[key] as never, client as never);
    const { create } = resource;
    resource.create = (...args: unknown[]) => replace(Reflect.apply(create as () => Promise<unknown>, resource, args));
    return sdk.wrap(client);
  };

  test.each<[string, (call: Call) => Promise<unknown>]>([
    ['asResponse', async (call) => (await call.asResponse()).text()],
    [
      'asResponse and the stream after it',
      async (call) => {
        await call.asResponse();
        await chunksOf((await call) as AsyncIterable<object>);
      },
    ],
  ])('has its stream once, by way of %s', async (_, take) => {
    const recorder = record();
    await take(sdk.stream(sdk.wrap(sdk.make(await localModel()))));
    expect(recorder.runs).toMatchObject([
      {
        end_time: expect.any(String),
        events: [{ name: 'new_token' }],
        extra: { metadata: { response_model: expect.any(String) } },
      },
    ]);
    expect(JSON.stringify(recorder.runs[0]?.outputs)).toContain('You said: What is tea?');
  });

  test('that other code has turned into a plain promise has the answer and its tokens', async () => {
    const recorder = record();
    const call = sdk.create(await makePatched((promise) => promise.then((answer) => answer)));
    expect(Object.getPrototypeOf(call)).toBe(Promise.prototype);
    await call;
    expect(recorder.runs).toMatchObject([{ outputs: { usage_metadata: { output_tokens: 5 } } }]);
  });

  class Other extends Promise<unknown> {}
  test.each([Promise, Other])(
    'that other code has turned into another %o has its stream once, however often it is asked',
    async (Class) => {
      const recorder = record();
      const call = sdk.stream(await makePatched((promise) => Class.resolve(promise)));
      call.catch(() => {});
      await chunksOf(await call);
      expect(recorder.runs).toMatchObject([
        { events: [{ name: 'new_token' }], extra: { metadata: { response_model: expect.any(String) } } },
      ]);
      expect(JSON.stringify(recorder.runs[0]?.outputs)).toContain('You said: What is tea?');
    },
  );

  test('that is retried has the answer and the id of the last request', async () => {
    const recorder = record();
    const model = await localModel();
    await sdk.create(sdk.wrap(sdk.make(model, { maxRetries: 1 })), { model: 'fail-429-once' });
    expect(model.requests).toHaveLength(2);
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]).not.toHaveProperty('error');
  });

  test('that fails has the error and the id of the request', async () => {
    const recorder = record();
    await expect(sdk.create(sdk.wrap(sdk.make(await localModel())), { model: 'fail-400' })).rejects.toThrow();
    expect(recorder.runs).toMatchObject([
      {
        error: expect.stringMatching(/^(BadRequest)?Error: 400 /),
        extra: { metadata: { request_id: expect.stringMatching(/^req_/) } },
      },
    ]);
    expect(recorder.runs[0]?.extra).not.toHaveProperty('runspan_end_reason');
  });

  test('that is aborted before its answer is cancelled', async () => {
    const recorder = record();
    const model = await localModel();
    const controller = new AbortController();
    const { signal } = controller;
    const call = sdk.create(sdk.wrap(sdk.make(model)), { model: 'hang' }, { signal });
    while (model.requests.length === 0) await new Promise(setImmediate);
    controller.abort();
    await expect(call).rejects.toThrow('Request was aborted.');
    expect(recorder.runs).toMatchObject([
      { error: expect.stringMatching(/Request was aborted\.\n/), extra: { runspan_end_reason: 'cancelled' } },
    ]);
  });

  test('that times out by the signal of the application fails, and so does its caller', async () => {
    const recorder = record();
    const client = sdk.wrap(sdk.make(await localModel()));
    const options = () => ({ signal: AbortSignal.timeout(50) });
    const ask = traceable(() => sdk.create(client, { model: 'hang' }, options()));
    await expect(ask()).rejects.toThrow('Request was aborted.');
    const stream = sdk.stream(client, { model: 'hang-mid-stream' }, options());
    await stream.then(chunksOf).catch(() => {});
    expect(recorder.runs[0]?.error).toContain('Request was aborted.');
    for (const { error } of recorder.runs.slice(1)) expect(error).toContain('TimeoutError: ');
    expect(recorder.runs.map(({ extra }) => extra?.runspan_end_reason)).toEqual(Array(3).fill(undefined));
  });

  test('is recorded as it was made, whatever the application does with its arguments', async () => {
    const recorder = record();
    const messages = [{ role: 'user', content: 'What is tea?' }];
    const call = sdk.create(sdk.wrap(sdk.make(await localModel())), { messages });
    Object.assign(messages[0] as object, { content: 'changed' });
    await call;
    expect(recorder.runs[0]?.inputs).toEqual({ messages: [{ role: 'user', content: 'What is tea?' }] });
  });
});
