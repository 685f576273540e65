// Which service gets the runs of clients and replicas, with which key, and what the runs contain there.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { configure, createExporter, currentRun, flush, redact, withExporter } from '#src/index.ts';
import { Client, type ClientLike, getCurrentRunTree, type KVMap, RunTree, traceable } from '#src/langsmith.ts';
import { createReceiver, type Receiver } from '#src/receiver.ts';
import { recordRuns } from '#src/testing/record-runs.ts';
import { gate } from '../support/gate.ts';
import { ingestServer } from '../support/ingest-server.ts';
import { logLines } from '../support/log-lines.ts';
import { runNames } from '../support/multipart-reader.ts';

const SECRET = 'hunter2';

async function service(): Promise<Receiver> {
  const receiver = await createReceiver();
  onTestFinished(() => receiver.close());
  return receiver;
}

/** Starts two services. The second one is that of `configure`. */
async function services(options: Parameters<typeof configure>[0] = {}) {
  const [other, configured] = [await service(), await service()];
  const exporter = configure({ endpoint: configured.url, project: 'default', ...options });
  onTestFinished(async () => void (await exporter.close()));
  return { other, configured, exporter };
}

async function runsOf(receiver: Receiver) {
  await flush();
  return receiver.runs({});
}

describe('the key, workspace and headers of a client', () => {
  const credentials = { apiKey: 'key-of-a', workspaceId: 'workspace-of-a', headers: { 'x-team': 'a' } };

  test.each<[string, boolean]>([
    ['not sent to a replica with another origin', false],
    ['sent to a replica with the same origin', true],
  ])('are %s', async (_, isSame) => {
    const [own, other] = [await ingestServer(), await ingestServer()];
    for (const { close } of [own, other]) onTestFinished(close);
    const client = new Client({ apiUrl: own.url, ...credentials });
    const { url, received } = isSame ? own : other;
    await traceable(() => 1, { client, tracingEnabled: true, replicas: [{ apiUrl: `${url}/api` }] })();
    await flush();
    const sent = received.map(({ headers }) => [headers['x-api-key'], headers['x-tenant-id'], headers['x-team']]);
    expect(sent).toEqual([isSame ? ['key-of-a', 'workspace-of-a', 'a'] : [undefined, undefined, undefined]]);
  });
});

describe('replicas', () => {
  test('hide what one of them hides, also if it is not the first', async () => {
    const { other, configured } = await services({ hideInputs: true, hideOutputs: true });
    const replicas = [{ apiUrl: other.url }, { projectName: 'b' }];
    await traceable((text: string) => text, { replicas })(SECRET);
    for (const receiver of [other, configured]) {
      expect((await runsOf(receiver)).map(({ inputs, outputs }) => [inputs, outputs])).toEqual([[{}, undefined]]);
    }
  });

  test('each get runs with their own redaction', async () => {
    const { other, configured } = await services({ redact: redact({ patterns: [/hunter\d/] }) });
    const call = (input: KVMap): never => {
      currentRun()?.event(SECRET, { text: SECRET });
      currentRun()?.attach(SECRET, new Uint8Array(4));
      currentRun()?.attach('photo', new Uint8Array(4));
      currentRun()?.attach('exchange-rates', new Uint8Array(4));
      currentRun()?.set({ outputs: input });
      throw new Error(SECRET);
    };
    const replicas = [{ apiUrl: other.url }, { projectName: 'b' }];
    const traced = traceable(call, { name: SECRET, tags: [SECRET], metadata: { note: SECRET }, replicas });
    await expect(traced({ note: SECRET, file: new Uint8Array(4_000) })).rejects.toThrow(SECRET);
    const [run] = await runsOf(configured);
    expect(JSON.stringify(run)).not.toContain(SECRET);
    expect(run).toMatchObject({
      name: '[Redacted]',
      tags: ['[Redacted]'],
      inputs: { note: '[Redacted]' },
      outputs: { note: '[Redacted]' },
      error: expect.stringContaining('Error: [Redacted]'),
      extra: { metadata: { note: '[Redacted]' } },
      events: [{ name: '[Redacted]' }],
    });
    expect(run?.attachments?.map(({ name }) => name)).toEqual(['photo', 'exchange-rates']);
    expect(await runsOf(other)).toMatchObject([{ name: SECRET, inputs: { note: SECRET }, tags: [SECRET] }]);
  });

  test('with masks get no attachments from payloads', async () => {
    const { other } = await services();
    const client = new Client({ apiUrl: other.url, hideInputs: true, hideOutputs: () => ({}) });
    const replicas = [{ projectName: 'a' }, { client, projectName: 'b' }];
    await traceable((input: object) => ({ input }), { replicas })({ file: new Uint8Array(4_000).fill(65) });
    const [run] = await runsOf(other);
    expect(run).toMatchObject({ inputs: {} });
    expect(run?.attachments).toBeUndefined();
  });

  test('of two functions have the masks of the client of each function', async () => {
    const { configured } = await services();
    const replicas = [{ projectName: 'a' }];
    await traceable((text: string) => text.length, { name: 'plain', replicas })(SECRET);
    const client = new Client({ hideInputs: true });
    await traceable((text: string) => text.length, { name: 'masked', replicas, client })(SECRET);
    expect((await runsOf(configured)).map(({ inputs }) => inputs)).toEqual([{ input: SECRET }, {}]);
  });

  test('without a service do not affect the others', async () => {
    const { configured } = await services();
    const replicas = [{ apiUrl: 'nonsense' }, { projectName: 'b' }];
    const nested = traceable((text: string) => text, { name: 'nested' });
    await traceable((text: string) => nested(text), { name: 'first', replicas })('a');
    await traceable((text: string) => nested(text), { name: 'first', replicas: replicas.toReversed() })('a');
    const run = { inputs: { input: 'a' }, outputs: { outputs: 'a' } };
    expect(await runsOf(configured)).toMatchObject([run, run, run, run]);
  });

  test('follow a later `configure`', async () => {
    const replicas = [{ projectName: 'b' }];
    const answer = traceable(() => 1, { replicas });
    for (let round = 0; round < 2; round++) {
      const { configured } = await services();
      await answer();
      expect(await runsOf(configured)).toHaveLength(1);
    }
  });

  test('use one exporter for all calls, also with a function that sends the requests', async () => {
    await services();
    const other = await ingestServer();
    onTestFinished(other.close);
    const client = new Client({ apiUrl: other.url, fetchImplementation: fetch });
    const replicas = [{ apiUrl: `${other.url}/api` }];
    for (let call = 0; call < 20; call++) await traceable(() => 1, { name: 'answer', client, replicas })();
    await flush();
    expect(other.received.map(runNames)).toEqual([Array(20).fill('answer')]);
    expect(other.infos).toBe(1);
  });

  test('of a tree are passed to an object that stands for its client', async () => {
    await services();
    const client = { createRun: vi.fn(async () => {}), updateRun: vi.fn(async () => {}) } satisfies ClientLike;
    const tree = new RunTree({ name: 'tree', client, replicas: [{ projectName: 'one' }, { projectName: 'two' }] });
    await tree.postRun();
    await tree.end({ a: 1 });
    await tree.patchRun();
    const projects = (client.createRun.mock.calls as unknown as [{ session_name: string }][]).map(
      ([{ session_name }]) => session_name,
    );
    expect(projects).toEqual(['one', 'two']);
    expect(client.updateRun.mock.calls).toMatchObject([
      [expect.any(String), { outputs: { a: 1 } }],
      [expect.any(String), { outputs: { a: 1 } }],
    ]);
  });

  test('may get a nested run without its parent, if the queue of one of them was full', async () => {
    const { configured } = await services();
    const full = await service();
    const exporter = createExporter({ endpoint: full.url, limits: { queueRuns: 1, lingerMs: 60_000 } });
    onTestFinished(async () => void (await exporter.close()));
    const held = traceable(() => 1, { name: 'held' });
    const { createRun, updateRun } = Client.prototype;
    const client = { exporter, createRun, updateRun };
    const replicas = [{ client, projectName: 'a' }, { projectName: 'b' }];
    const inner = traceable(() => 1, { name: 'inner' });
    const outer = traceable(async () => exporter.flush().then(() => inner()), { name: 'outer', replicas });
    await withExporter(exporter, held);
    await outer();
    expect((await runsOf(full)).map(({ name }) => name)).toEqual(['held', 'inner']);
    expect((await runsOf(configured)).map(({ name }) => name)).toEqual(['outer', 'inner']);
  });
});

test('a root that is created by hand is sent to the exporter around it, wherever it is posted', async () => {
  const { other, configured } = await services();
  const exporter = createExporter({ endpoint: other.url, limits: { lingerMs: 1 } });
  onTestFinished(async () => void (await exporter.close()));
  const tree = withExporter(exporter, () => new RunTree({ name: 'root' }));
  await tree.postRun();
  await tree.end();
  await tree.patchRun();
  expect([await runsOf(other), await runsOf(configured)]).toMatchObject([[{ name: 'root' }], []]);
});

describe('hidden metadata', () => {
  const options = { client: new Client({ hideMetadata: true }), metadata: { note: SECRET } };

  test('is not in the headers of a child tree', async () => {
    await services();
    const headers = () => getCurrentRunTree().createChild({ name: 'child' }).createChild({ name: 'below' }).toHeaders();
    const { baggage } = await traceable(headers, options)();
    expect(baggage).toBe('langsmith-project=default');
  });

  test('is not inherited by a function with another client', async () => {
    const { other, configured } = await services();
    const inner = traceable(() => 1, { name: 'inner', client: new Client({ apiUrl: other.url }) });
    const masked = traceable(() => 1, { name: 'masked', client: options.client });
    const outer = traceable(async () => {
      getCurrentRunTree().metadata = { more: SECRET };
      await masked();
      return inner();
    }, options);
    await outer();
    const tree = new RunTree({ name: 'tree', ...options });
    await (inner as (tree: RunTree) => unknown)(tree);
    await tree.postRun();
    await (inner as (tree: RunTree) => unknown)(tree);
    const metadataOf = async (receiver: Receiver) => (await runsOf(receiver)).map(({ extra }) => extra?.metadata);
    expect(await metadataOf(other)).toEqual([{}, {}, {}]);
    const hidden = { note: '[Redacted]', more: '[Redacted]' };
    expect((await metadataOf(configured)).slice(0, 2)).toEqual([{ note: '[Redacted]', more: '[Redacted]' }, hidden]);
  });
});

describe('a client with masks and without a service', () => {
  test('records where a run without the client would be recorded', async () => {
    const { other, configured } = await services();
    const tenant = createExporter({ endpoint: other.url });
    onTestFinished(async () => void (await tenant.close()));
    const client = new Client({ hideInputs: true });
    const inner = traceable((text: string) => text, { name: 'inner', client });
    const plain = traceable((text: string) => inner(text), { name: 'plain' });
    const outer = traceable((text: string) => plain(text), { name: 'outer', client });
    await withExporter(tenant, () => outer(SECRET));
    const runs = await runsOf(other);
    expect(runs.map(({ name, inputs }) => [name, inputs])).toEqual([
      ['outer', {}],
      ['plain', {}],
      ['inner', {}],
    ]);
    expect(runs[2]?.parent_run_id).toBe(runs[1]?.id);
    expect(await runsOf(configured)).toEqual([]);
  });

  test('records below a run with an exporter of its own, if `configure` sets none', async () => {
    configure({ tracing: false });
    vi.stubEnv('RUNSPAN_TRACING', 'true');
    onTestFinished(() => void vi.unstubAllEnvs());
    const other = await service();
    const inner = traceable((text: string) => text, { name: 'inner', client: new Client({ hideInputs: true }) });
    const client = new Client({ apiUrl: other.url });
    await traceable((text: string) => inner(text), { name: 'outer', client })(SECRET);
    const found = (await runsOf(other)).map(({ name, inputs }) => [name, inputs]);
    expect(found).toEqual([
      ['outer', { input: SECRET }],
      ['inner', {}],
    ]);
  });
});

test('the payloads of open runs with masks do not count towards `limits.queueBytes`', async () => {
  const { exporter } = await services({ limits: { queueBytes: 4_000_000, startDelayMs: 60_000 } });
  const client = new Client({ hideOutputs: () => ({}) });
  const open = traceable((_text: string) => new Promise(() => {}), { name: 'open', client });
  for (let call = 0; call < 8; call++) void open('x'.repeat(1_000_000));
  expect([exporter.stats().open, exporter.stats().dropped]).toEqual([8, 0]);
});

describe('an object that stands for a client', () => {
  test('gets no attachments from payloads, which would pass the masks of a client that it calls', async () => {
    const { configured } = await services();
    class Subclass extends Client {}
    Subclass.prototype.createRun = function (run) {
      return Client.prototype.createRun.call(this, run);
    };
    const client = new Subclass({ hideInputs: true, hideOutputs: () => ({}) });
    await traceable((input: object) => ({ input }), { client })({ file: new Uint8Array(4_000).fill(65) });
    const [run] = await runsOf(configured);
    expect(run).toMatchObject({ inputs: {} });
    expect(run?.attachments).toBeUndefined();
  });

  test('gets the end of a run after its `createRun` has settled', async () => {
    const { configured } = await services();
    const opened = gate();
    class Subclass extends Client {
      override async createRun(run: Parameters<Client['createRun']>[0]): Promise<void> {
        await opened;
        await super.createRun(run);
      }
    }
    const client = new Subclass();
    expect(await traceable((n: number) => n + 1, { name: 'function', client })(1)).toBe(2);
    const tree = new RunTree({ name: 'tree', client });
    const posted = tree.postRun();
    await tree.end({ a: 1 });
    const patched = tree.patchRun();
    opened.open();
    await Promise.all([posted, patched]);
    const found = (await runsOf(configured)).map(({ name, outputs, end_time }) => [name, outputs, !!end_time]);
    expect(found).toEqual([
      ['function', { outputs: 2 }, true],
      ['tree', { a: 1 }, true],
    ]);
  });

  test('gets the end of a run before `flush` resolves, if a promise provides the outputs', async () => {
    const client = { createRun: vi.fn(), updateRun: vi.fn() };
    const outputs = gate<KVMap>();
    const answer = traceable(() => 1, { client, tracingEnabled: true, processOutputs: () => outputs });
    await answer();
    const flushed = flush();
    expect(client.updateRun).not.toHaveBeenCalled();
    outputs.open({ masked: true });
    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(client.updateRun.mock.calls).toMatchObject([[expect.any(String), { outputs: { masked: true } }]]);
  });
});

test('a client that has options, but no endpoint, logs that it records nothing', async () => {
  const recorder = recordRuns();
  onTestFinished(recorder.stop);
  const lines = logLines('warn');
  const client = new Client({ fetchImplementation: fetch });
  expect(await traceable(() => 1, { client })()).toBe(1);
  expect(await traceable(() => 2, { client })()).toBe(2);
  expect(recorder.runs).toEqual([]);
  expect(lines).toEqual([
    'warn: Client: no run is recorded without a valid endpoint; set `apiUrl` or LANGSMITH_ENDPOINT.',
  ]);
});
