// Runs that go to several projects and services, by the option `replicas` and by `LANGSMITH_RUNS_ENDPOINTS`.
import { AsyncResource } from 'node:async_hooks';
import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { RunnableLambda } from '@langchain/core/runnables';
import { describe, expect, onTestFinished, test } from 'vitest';
import * as core from '#src/index.ts';
import { type ConfigureOptions, configure, flush, redact, shutdown, stats } from '#src/index.ts';
import { Client, getCurrentRunTree, type Replica, RunTree, traceable, withRunTree } from '#src/langsmith.ts';
import type { Receiver } from '#src/receiver.ts';
import { record } from '../instrument/recorder.ts';
import { environmentOf } from '../support/environment.ts';
import { type IngestServer, ingestServerInTest } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';
import { runNames } from '../support/multipart-reader.ts';
import { startReceiver } from '../support/receiver.ts';

const SECRET = 'hunter2';

/** Turns tracing on with LangSmith's variables, and returns the lines that are logged until the test has finished. */
function langsmith(variables: Record<string, string>, options: ConfigureOptions = {}): string[] {
  environmentOf({ LANGSMITH_TRACING: 'true', ...variables });
  const lines = logLines();
  configure({ log: (level, line) => void (level === 'debug' || lines.push(line)), ...options });
  onTestFinished(async () => void (await shutdown({ timeoutMs: 1 })));
  return lines;
}

function endpoints(value: unknown): Record<string, string> {
  return { LANGSMITH_RUNS_ENDPOINTS: JSON.stringify(value) };
}

function services(...list: readonly { readonly url: string }[]): Record<string, string> {
  return endpoints(list.map(({ url }) => ({ api_url: url, api_key: '' })));
}

const search = traceable((n: number) => n + 1, { name: 'search' });

/** Records a trace of a function, a nested function, a tree in another async context and a run of `runspan`. */
async function recordTrace(replicas?: Replica[]): Promise<void> {
  const queue = AsyncResource.bind((work: () => unknown) => work());
  const answer = async (n: number): Promise<number> => {
    const child = getCurrentRunTree().createChild({ name: 'by hand', inputs: { a: 1 } });
    await queue(async () => {
      await child.postRun();
      await child.end({ b: 2 });
      await child.patchRun();
    });
    await core.traceable(() => 1, { name: 'of runspan' })();
    return search(n);
  };
  expect(await traceable(answer, { name: 'answer', replicas })(1)).toBe(2);
}

const TRACE = [
  ['answer', undefined, { input: 1 }, { outputs: 2 }],
  ['by hand', 'answer', { a: 1 }, { b: 2 }],
  ['of runspan', 'answer', {}, { outputs: 1 }],
  ['search', 'answer', { input: 1 }, { outputs: 2 }],
];

/** Returns the runs in a project with the names of their parents. */
async function traceIn(receiver: Receiver, project: string) {
  await flush();
  const runs = (await receiver.runs({})).filter(({ session_name }) => session_name === project);
  const shown = runs.map(({ id, name, parent_run_id, trace_id, dotted_order, inputs, outputs, end_time }) => {
    const isWhole = dotted_order.endsWith(id) && dotted_order.includes(trace_id) && end_time !== undefined;
    const parent = runs.find((run) => run.id === parent_run_id)?.name;
    return [name, isWhole ? parent : 'incomplete', inputs, outputs];
  });
  return shown.sort((a, b) => String(a).localeCompare(String(b)));
}

describe('each destination gets whole traces', () => {
  test.each<[string, (url: string) => Replica[], string[], string[]]>([
    ['two projects', () => [['one'], ['two', {}]], ['one', 'two'], []],
    ['two services', (apiUrl) => [{ projectName: 'one' }, { apiUrl, apiKey: 'key' }], ['one'], ['default']],
    ['no valid service first', () => [{ apiUrl: 'nonsense' }, ['one']], ['one'], []],
    ['no valid service last', () => [['one'], { apiUrl: 'nonsense' }], ['one'], []],
    ['the project of the run itself', () => [['default'], ['two']], ['default', 'two'], []],
  ])('if replicas name %s', async (_, replicas, here, there) => {
    const [own, other] = [await startReceiver(), await startReceiver()];
    langsmith({ LANGSMITH_ENDPOINT: own.url });
    await recordTrace(replicas(other.url));
    for (const project of here) expect(await traceIn(own, project)).toEqual(TRACE);
    for (const project of there) expect(await traceIn(other, project)).toEqual(TRACE);
    expect(await own.runs({})).toHaveLength(here.length * TRACE.length);
  });

  test.each<[string, (one: string, two: string) => object, string]>([
    [
      'a list',
      (one, two) => [
        { api_url: one, api_key: 'a', project_name: null },
        { api_url: `${two}/`, api_key: 'b', project_name: 'two' },
      ],
      'two',
    ],
    ['an object', (one, two) => ({ [one]: 'a', [two]: 'b' }), 'default'],
  ])('if LANGSMITH_RUNS_ENDPOINTS is %s', async (_, value, project) => {
    const [one, two] = [await startReceiver(), await startReceiver()];
    langsmith(endpoints(value(one.url, two.url)));
    const before = stats().sent;
    await recordTrace();
    expect(await traceIn(one, 'default')).toEqual(TRACE);
    expect(await traceIn(two, project)).toEqual(TRACE);
    expect(stats().sent - before).toBe(2 * TRACE.length);
  });

  test('also of runs in another process, and of steps of LangChain', async () => {
    const [one, two] = [await startReceiver(), await startReceiver()];
    const list = [one.url, two.url].map((api_url) => ({ api_url, api_key: '' }));
    langsmith(endpoints([list[0], { ...list[1], project_name: 'two' }]));
    const step = RunnableLambda.from((n: number) => n + 1).withConfig({ runName: 'step' });
    const tree = new RunTree({ name: 'tree' });
    await tree.postRun();
    await withRunTree(tree, () => step.invoke(1));
    await tree.end();
    await tree.patchRun();
    const caller = () => step.invoke(1).then(() => getCurrentRunTree().toHeaders());
    const headers = await traceable(caller, { name: 'caller' })();
    await awaitAllCallbacks();
    expect(decodeURIComponent(headers.baggage)).toBe('langsmith-project=default');
    await withRunTree(RunTree.fromHeaders(headers) as RunTree, () => search(1));
    for (const [receiver, project] of [[one, 'default'] as const, [two, 'two'] as const]) {
      const names = (await traceIn(receiver, project)).map(([name, parent]) => `${name} below ${parent}`);
      const expected = ['caller below undefined', 'search below caller', 'step below caller', 'step below tree'];
      expect(names).toEqual([...expected, 'tree below undefined']);
    }
  });
});

test('the copies have the fields that a replica updates, and the ids of the run for its project or if it is primary', async () => {
  const own = await startReceiver();
  langsmith({ LANGSMITH_ENDPOINT: own.url });
  const example = '0193b3a0-6666-4000-8000-000000000001';
  const updates = { name: 'other', tags: ['copy'], metadata: { stage: 'test' }, reference_example_id: example };
  const post = async (replicas: Replica[]): Promise<string> => {
    const tree = new RunTree({ name: 'tree', tags: ['own'], metadata: { user: 'ada' }, replicas });
    await tree.postRun();
    await tree.end();
    await tree.patchRun();
    return tree.id;
  };
  const ids = [
    await post([['default'], ['two', updates]]),
    await post([['default'], { projectName: 'three', primary: true }]),
  ];
  await flush();
  const runs = await own.runs({});
  const kept = runs.filter(({ id }) => ids.includes(id)).map(({ session_name }) => session_name);
  expect([runs.length, kept.sort()]).toEqual([4, ['default', 'three']]);
  const shown = ['three', 'two'].map((project) => {
    const run = runs.find(({ session_name }) => session_name === project);
    return [run?.name, run?.tags, run?.extra?.metadata, run?.reference_example_id];
  });
  expect(shown).toEqual([
    ['tree', ['own'], { user: 'ada' }, undefined],
    ['other', ['copy'], { user: 'ada', stage: 'test' }, example],
  ]);
});

test.each(['replicas', 'LANGSMITH_RUNS_ENDPOINTS'])(
  'services of %s that fail neither delay nor lose the runs of another',
  async (way) => {
    const refusing = await ingestServerInTest(() => ({ status: 401 }));
    const [holding, away, good] = [
      await ingestServerInTest(() => 'hold'),
      await ingestServerInTest(),
      await ingestServerInTest(),
    ];
    await away.close();
    const urls = [refusing, holding, away, good].map(({ url }) => url);
    const isOption = way === 'replicas';
    langsmith(isOption ? {} : endpoints(Object.fromEntries(urls.map((url) => [url, 'key']))));
    const replicas = isOption ? ['nonsense', ...urls].map((apiUrl) => ({ apiUrl, apiKey: 'key' })) : undefined;
    const before = stats();
    const names = Array.from({ length: 20 }, (_, call) => `call ${call}`);
    for (const name of names) await traceable((n: number) => n, { name, replicas })(5);
    await expect.poll(() => stats().sent - before.sent).toBe(20);
    expect(good.received.flatMap(runNames)).toEqual(names);
    expect(good.received.map(({ body }) => body.toString()).join()).toContain('{"input":5}');
    expect(stats().dropped).toBe(before.dropped);
    expect(await shutdown({ timeoutMs: 1 })).toEqual({ ok: false, pending: 60 });
  },
);

describe('a key is sent to its own service only:', () => {
  const sent = ({ received }: IngestServer) =>
    received.map(({ headers }) => [headers['x-api-key'], headers['x-tenant-id'], headers.authorization]).sort();

  test('that of LANGSMITH_RUNS_ENDPOINTS, whatever other variables and `configure` set', async () => {
    const [one, two, unused] = [await ingestServerInTest(), await ingestServerInTest(), await ingestServerInTest()];
    const list = [
      { api_url: one.url, api_key: 'key-1', project_name: 'a' },
      { api_url: one.url, api_key: 'key-1', project_name: 'b' },
      { api_url: one.url, api_key: 'key-2' },
      { api_url: two.url, api_key: '' },
    ];
    const other = { LANGSMITH_ENDPOINT: unused.url, LANGSMITH_API_KEY: 'other', LANGSMITH_WORKSPACE_ID: 'w' };
    const lines = langsmith({ ...endpoints(list), ...other }, { headers: { authorization: 'own' } });
    await traceable(() => 1)();
    await flush();
    const same = ['key-1', 'key-2'].map((key) => [key, 'w', 'own']);
    expect([sent(one), sent(two), sent(unused)]).toEqual([same, [[undefined, undefined, undefined]], []]);
    expect(lines).toEqual(['configuration: LANGSMITH_RUNS_ENDPOINTS is set, so LANGSMITH_ENDPOINT is not used.']);
  });

  test('that of a client, as its workspace and headers', async () => {
    const [own, other] = [await ingestServerInTest(), await ingestServerInTest()];
    langsmith({ LANGSMITH_TRACING: 'false' });
    const client = new Client({ apiUrl: own.url, apiKey: 'key', workspaceId: 'w', headers: { authorization: 'own' } });
    const replicas = [{ apiUrl: `${other.url}/api` }, { apiUrl: `${own.url}/api` }];
    await traceable(() => 1, { client, tracingEnabled: true, replicas })();
    await flush();
    expect([sent(own), sent(other)]).toEqual([[['key', 'w', 'own']], [[undefined, undefined, undefined]]]);
  });
});

test('LANGSMITH_RUNS_ENDPOINTS applies to the exporter of the environment and to no other one', async () => {
  const [one, two, other] = [await ingestServerInTest(), await ingestServerInTest(), await startReceiver()];
  langsmith(services(one, two));
  const recorder = record();
  await search(1);
  recorder.stop();
  await core.withExporter(core.createExporter({ endpoint: other.url }), () => search(2));
  await traceable(() => 1, { name: 'of a client', client: new Client({ apiUrl: other.url }) })();
  configure({ endpoint: other.url });
  await search(3);
  langsmith({ ...services(one, two), RUNSPAN_ENDPOINT: other.url });
  await search(4);
  await flush();
  expect([recorder.runs.length, (await other.runs({})).length]).toEqual([1, 4]);
  expect([one.received, two.received]).toEqual([[], []]);
});

test.each<[string, ConstructorParameters<typeof Client>[0]]>([
  ['a sample rate', { tracingSamplingRate: 1 }],
  ['headers', { headers: { 'x-team': 'a' } }],
  ['`fetchImplementation`', { fetchImplementation: (...args: Parameters<typeof fetch>) => fetch(...args) }],
  ['a time limit', { timeout_ms: 20_000 }],
])('LANGSMITH_RUNS_ENDPOINTS applies to a client with %s', async (_, options) => {
  const [one, two] = [await startReceiver(), await startReceiver()];
  langsmith(services(one, two));
  const client = new Client(options);
  await traceable(() => 1, { name: 'answer', client })();
  await client.createRun({ name: 'created', run_type: 'chain', inputs: {}, start_time: 1, end_time: 2 });
  await flush();
  for (const { runs } of [one, two]) {
    expect((await runs({})).map(({ name }) => name).sort()).toEqual(['answer', 'created']);
  }
});

test.each<[Record<string, string>, object]>([
  [{ RUNSPAN_TRACING: 'false' }, {}],
  [{ LANGSMITH_TRACING: 'false' }, {}],
  [{}, { tracingEnabled: false }],
])('nothing is sent to any service while tracing is off by %j, %j', async (variables, options) => {
  const [one, two] = [await ingestServerInTest(), await ingestServerInTest()];
  langsmith({ ...services(one, two), ...variables });
  for (const replicas of [undefined, [{ apiUrl: two.url }, ['one']] as Replica[]]) {
    await traceable((n: number) => search(n), { ...options, replicas })(1);
  }
  await flush();
  expect([one.received, two.received]).toEqual([[], []]);
});

describe('no service gets what is hidden', () => {
  test('by `configure`, in runs and in updates', async () => {
    const [one, two, other] = [await ingestServerInTest(), await ingestServerInTest(), await ingestServerInTest()];
    langsmith(services(one, two), { redact: redact({ patterns: [/hunter\d/] }), hideOutputs: true });
    const updates = { name: SECRET, tags: [SECRET], metadata: { note: SECRET } };
    for (const replicas of [undefined, [{ apiUrl: other.url, updates }]]) {
      const answer = (input: object) => ({ input, of: 'outputs' });
      await traceable(answer, { name: SECRET, metadata: { note: SECRET }, replicas })({ note: SECRET });
    }
    await flush();
    for (const { received } of [one, two, other]) {
      expect(received.map(runNames)).toEqual([['[Redacted]']]);
      expect(received.map(({ body }) => body.toString()).join()).not.toMatch(/hunter2|"of":/);
    }
  });

  test('by the client of a function, in payloads and in updates', async () => {
    const [own, other] = [await ingestServerInTest(), await ingestServerInTest()];
    langsmith({ LANGSMITH_ENDPOINT: own.url });
    const hide = async () => ({ masked: true });
    const client = new Client({ hideInputs: hide, hideOutputs: () => ({}), hideMetadata: hide });
    const replicas: Replica[] = [{ apiUrl: other.url, updates: { metadata: { note: 'of the replica' } } }, ['two']];
    const answer = (input: object) => ({ input, note: SECRET });
    const file = new Uint8Array(4_000).fill(65);
    await traceable(answer, { name: 'masked', client, replicas, metadata: { note: SECRET } })({ note: SECRET, file });
    // The masks belong to the client, and not to the replicas.
    await traceable((n: number) => n, { name: 'plain', replicas })(5);
    await flush();
    for (const [{ received }, notes] of [[own, 0] as const, [other, 1] as const]) {
      const text = received.map(({ body }) => body.toString()).join();
      expect(text).toContain('{"masked":true}');
      expect(text).toContain('{"input":5}');
      expect(text.match(/of the replica/g) ?? []).toHaveLength(notes);
      expect(text).not.toMatch(/hunter2|AAAA/);
    }
  });
});

test.each([[[null]], ['x'], [[['p', null]]]])(
  'invalid replicas throw nothing, and lose no run: %j',
  async (replicas) => {
    const own = await ingestServerInTest();
    langsmith({ LANGSMITH_ENDPOINT: own.url });
    await traceable(() => 1, { name: 'answer', replicas: replicas as unknown as Replica[] })();
    await flush();
    expect(own.received.map(runNames)).toEqual([['answer']]);
  },
);

test('replicas have one exporter for all calls, and those without a service follow a later `configure`', async () => {
  const other = await ingestServerInTest();
  const client = new Client({ apiUrl: other.url, fetchImplementation: fetch });
  const replicas = [{ apiUrl: `${other.url}/api` }];
  const own: Replica[] = [['b']];
  for (let round = 0; round < 2; round++) {
    const receiver = await startReceiver();
    langsmith({ LANGSMITH_ENDPOINT: receiver.url });
    for (let call = 0; call < 10; call++) await traceable(() => 1, { name: 'answer', client, replicas })();
    await traceable(() => 1, { replicas: own })();
    await flush();
    expect(await receiver.runs({})).toMatchObject([{ session_name: 'b' }]);
  }
  expect(other.received.map(runNames)).toEqual([Array(10).fill('answer'), Array(10).fill('answer')]);
  expect(other.infos).toBe(1);
});
