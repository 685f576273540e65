import { beforeEach, describe, expect, test, vi } from 'vitest';
import { currentRun, flush, shutdown, stats } from '#src/index.ts';
import { Client, RunTree, traceable } from '#src/langsmith.ts';
import { collectAll, collected, collectUntil } from '../support/garbage.ts';
import { gate } from '../support/gate.ts';
import { ingestServerInTest } from '../support/ingest-server.ts';
import { startReceiver } from '../support/receiver.ts';

type Config = NonNullable<ConstructorParameters<typeof Client>[0]>;

beforeEach(() => {
  vi.stubEnv('RUNSPAN_TRACING', 'true');
  return shutdown;
});

function recordWith(config: Config, name = 'answer'): void {
  traceable((text: string) => text, { name, client: new Client(config) })('hunter2');
}

const exitListeners = (): number => process.listenerCount('beforeExit');

test('clients with the same options send their runs together', async () => {
  const service = await ingestServerInTest();
  const config = { apiUrl: service.url, apiKey: 'key', headers: { 'x-team': 'a' }, hideMetadata: true };
  for (let client = 0; client < 50; client++) {
    recordWith({ ...config, headers: { ...config.headers }, hideOutputs: client % 2 === 0, hideInputs: () => ({}) });
  }
  await flush();
  expect(service.received.map(({ path }) => path)).toEqual(['/runs/multipart']);
});

test.each<[string, Config, Record<string, string>]>([
  ['key', { apiKey: 'other' }, {}],
  ['workspace', { workspaceId: 'other' }, {}],
  ['header', { headers: { 'x-team': 'other' } }, {}],
  ['object of headers', { headers: new Headers({ 'x-team': 'a' }) as never }, {}],
  ['key from a function', { apiKey: (() => 'key') as never }, {}],
  ['sample rate', { tracingSamplingRate: 1 }, {}],
  ['project in the environment', {}, { LANGSMITH_PROJECT: 'other' }],
])('a client with another %s sends its runs apart', async (_, other, variables) => {
  const service = await ingestServerInTest();
  const config = { apiUrl: service.url, apiKey: 'key', headers: { 'x-team': 'a' } };
  recordWith(config);
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  recordWith({ ...config, ...other });
  await flush();
  const teams = [config, { ...config, ...other }].map(({ headers }) => new Headers(headers).get('x-team'));
  expect(service.received.map(({ headers }) => headers['x-team']).sort()).toEqual(teams);
});

test.each([{}, { hideInputs: true }])('a run of a client with %j has the address of its page', async (options) => {
  const service = await ingestServerInTest();
  const client = new Client({ apiUrl: service.url, ...options });
  const run = await traceable(() => currentRun(), { client })();
  expect(run?.url).toBe(`${service.url}/?trace=${run?.traceId}`);
});

test('a client that is created after `shutdown` records runs', async () => {
  const receiver = await startReceiver();
  const before = new Client({ apiUrl: receiver.url });
  await shutdown();
  recordWith({ apiUrl: receiver.url }, 'after');
  await flush();
  expect((await receiver.runs({})).map(({ name }) => name)).toEqual(['after']);
  expect(before.exporter).toBeDefined();
});

describe('the exporter of clients that were garbage-collected', () => {
  test('is closed after its runs are delivered', async () => {
    const service = await ingestServerInTest();
    const before = [exitListeners(), stats().sent];
    for (let client = 0; client < 20; client++) recordWith({ apiUrl: service.url, apiKey: `key-${client}` });
    expect(exitListeners() - (before[0] as number)).toBe(1);
    await flush();
    await collectUntil(() => exitListeners() === before[0]);
    expect([exitListeners(), stats().sent - (before[1] as number)]).toEqual([before[0], 20]);
  });

  test('delivers the runs that it still has', async () => {
    const answer = gate();
    const service = await ingestServerInTest(async () => {
      await answer;
      return { status: 202 };
    });
    const before = stats();
    const dropped = (() => {
      const client = new Client({ apiUrl: service.url });
      traceable(() => 'text', { name: 'answer', client })();
      return new WeakRef(client.forcedExporter as object);
    })();
    await service.arrived(1);
    await collected(dropped);
    expect(stats().sent - before.sent).toBe(0);
    answer.open();
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect([stats().sent - before.sent, stats().dropped - before.dropped]).toEqual([1, 0]);
  });

  test('stays open while a run is open, and while a traced function uses it', async () => {
    const receiver = await startReceiver();
    const { tree, answer } = (() => {
      const client = new Client({ apiUrl: receiver.url });
      const answer = traceable((text: string) => text, { name: 'answer', client });
      return { tree: new RunTree({ name: 'open', client: new Client({ apiUrl: receiver.url }) }), answer };
    })();
    await tree.postRun();
    await collectAll();
    answer('text');
    await tree.end({});
    await tree.patchRun();
    await flush();
    expect((await receiver.runs({})).map(({ name }) => name).sort()).toEqual(['answer', 'open']);
  });
});
