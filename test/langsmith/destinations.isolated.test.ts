// Which service gets the runs of clients and trees, and what the runs contain there.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { configure, createExporter, flush, withExporter } from '#src/index.ts';
import { Client, getCurrentRunTree, RunTree, traceable } from '#src/langsmith.ts';
import type { Receiver } from '#src/receiver.ts';
import { record } from '../instrument/recorder.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';
import { startReceiver } from '../support/receiver.ts';

const SECRET = 'hunter2';

/** Starts two services. The second one is that of `configure`. */
async function services(options: Parameters<typeof configure>[0] = {}) {
  const [other, configured] = [await startReceiver(), await startReceiver()];
  const exporter = configure({ endpoint: configured.url, project: 'default', ...options });
  onTestFinished(async () => void (await exporter.close()));
  return { other, configured, exporter };
}

async function runsOf(receiver: Receiver) {
  await flush();
  return receiver.runs({});
}

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
    environmentOf({ RUNSPAN_TRACING: 'true' });
    const other = await startReceiver();
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

test('a client that has options, but no endpoint, logs that it records nothing', async () => {
  const recorder = record();
  const lines = logLines('warn');
  const client = new Client({ fetchImplementation: fetch });
  expect(await traceable(() => 1, { client })()).toBe(1);
  expect(await traceable(() => 2, { client })()).toBe(2);
  expect(recorder.runs).toEqual([]);
  expect(lines).toEqual([
    'warn: Client: no run is recorded without a valid endpoint; set `apiUrl` or LANGSMITH_ENDPOINT.',
  ]);
});

test("a client with only a key sends its runs to the endpoint of LangSmith's variables", async () => {
  const receiver = await startReceiver({ apiKey: 'secret' });
  environmentOf({ LANGSMITH_ENDPOINT: receiver.url });
  const client = new Client({ apiKey: 'secret' });
  onTestFinished(async () => void (await client.exporter?.close()));
  await traceable(async () => 1, { name: 'keyed', client, tracingEnabled: true })();
  await client.flush();
  expect(await receiver.runs({})).toMatchObject([{ name: 'keyed' }]);
});

test('`fetchImplementation` sends the requests of a client', async () => {
  const receiver = await startReceiver();
  environmentOf({ RUNSPAN_TRACING: 'true' });
  const urls: string[] = [];
  const fetchImplementation = vi.fn<typeof fetch>((url, init) => {
    urls.push(String(url).replace(receiver.url, ''));
    return fetch(url, init);
  });
  const client = new Client({ apiUrl: receiver.url, fetchImplementation });
  onTestFinished(async () => void (await client.exporter?.close()));
  const id = await traceable(() => getCurrentRunTree().id, { name: 'answer', client })();
  await client.flush();
  await client.createFeedback(id, 'helpful', { score: 1 });
  expect((await receiver.runs({})).map(({ name }) => name)).toEqual(['answer']);
  expect(urls).toEqual(expect.arrayContaining(['/runs/multipart', '/feedback']));
});

test('a client of another copy of the package records as one of this copy', async () => {
  const recorder = record();
  vi.resetModules();
  const copy = await import('#src/langsmith.ts');
  const client = new copy.Client({ hideInputs: true }) as unknown as Client;
  await traceable((text: string) => text.length, { name: 'answer', client })(SECRET);
  expect(recorder.runs).toMatchObject([{ name: 'answer', inputs: {}, outputs: { outputs: SECRET.length } }]);
});

test("a client of LangSmith's package, which may hide values, records nothing and is logged", async () => {
  const recorder = record();
  const lines = logLines('warn');
  const { Client: Theirs } = await import('langsmith');
  const client = new Theirs({ apiKey: 'key', hideInputs: true }) as never;
  expect(await traceable((text: string) => text, { client })(SECRET)).toBe(SECRET);
  const tree = new RunTree({ name: 'tree', client });
  await tree.postRun();
  await tree.patchRun();
  expect(recorder.runs).toEqual([]);
  expect(lines).toEqual([
    'warn: client: expected a Client of runspan/langsmith; no run is recorded, because another may hide values.',
  ]);
});
