import { once } from 'node:events';
import { createServer } from 'node:http';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { ConfigureOptions, Stats } from '#src/index.ts';
import { environmentOf, tune } from './support/environment.ts';
import { freshPackage } from './support/fresh-copy.ts';
import { gate } from './support/gate.ts';
import { type IngestServer, ingestServerInTest, type Received } from './support/ingest-server.ts';
import { listenInTest } from './support/listen-in-test.ts';
import { readJsonParts } from './support/multipart-reader.ts';

/** A service that accepts everything, once `ready` has resolved. */
async function service(ready: Promise<unknown> = Promise.resolve()): Promise<IngestServer> {
  return ingestServerInTest(async () => {
    await ready;
    return { status: 202 };
  });
}

async function configured(options: ConfigureOptions = {}, ready?: Promise<unknown>) {
  const server = await service(ready);
  const runspan = await freshPackage();
  runspan.configure({ endpoint: server.url, log, ...options });
  return { server, ...runspan };
}

/** The received runs by name, with their records: `{ ask: 'post+patch' }`. */
function arrivals(received: readonly Received[]): Record<string, string> {
  const names: Record<string, string> = {};
  for (const request of received) {
    for (const [part, { name }] of readJsonParts(request)) {
      const [op, , field] = part.split('.');
      if (field === undefined) names[String(name)] = [names[String(name)], op].filter(Boolean).join('+');
    }
  }
  return names;
}

/** Checks the sum of the counts, and returns those above zero. */
function counts(stats: Stats): Partial<Stats> {
  const { created, recovered, open, queued, inFlight, spooled, sent, dropped, sampledOut } = stats;
  expect(created + recovered).toBe(open + queued + inFlight + spooled + sent + dropped);
  const numbers = { created, recovered, open, queued, inFlight, spooled, sent, dropped, sampledOut };
  return Object.fromEntries(Object.entries(numbers).filter(([, count]) => count !== 0));
}

const log = 'silent';

beforeEach(() => environmentOf());

describe('tracing is off', () => {
  test('without an endpoint: functions and runs work, and no run is counted', async () => {
    const { configure, currentRun, flush, shutdown, startRun, stats, traceable } = await freshPackage();
    const exporter = configure({ log });
    expect(traceable(() => currentRun())()).toBeUndefined();
    startRun({ name: 'by hand' }).end();
    expect(counts(stats())).toEqual({});
    expect(exporter.stats()).toEqual(stats());
    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(await shutdown()).toEqual({ ok: true, pending: 0 });
  });

  test('with `tracing: false` and an endpoint', async () => {
    const server = await service();
    const { configure, flush, stats, traceable } = await freshPackage();
    configure({ endpoint: server.url, tracing: false, log });
    traceable(() => 1)();
    await flush();
    expect([counts(stats()), server.received]).toEqual([{}, []]);
  });
});

test('the environment is read at the first traced call, not at import', async () => {
  const server = await service();
  const { flush, stats, traceable } = await freshPackage();
  vi.stubEnv('RUNSPAN_ENDPOINT', server.url);
  vi.stubEnv('RUNSPAN_PROJECT', 'from environment');
  traceable(() => 1, { name: 'first' })();
  vi.stubEnv('RUNSPAN_ENDPOINT', 'http://127.0.0.1:1');
  traceable(() => 2, { name: 'second' })();
  expect(await flush()).toEqual({ ok: true, pending: 0 });
  expect(arrivals(server.received)).toEqual({ first: 'post', second: 'post' });
  expect(counts(stats())).toEqual({ created: 2, sent: 2 });
  const [run] = readJsonParts(server.received[0] as Received).values();
  expect(run?.session_name).toBe('from environment');
});

describe('the ledger', () => {
  test('adds up at each step of a run', async () => {
    const ready = gate();
    const { server, flush, startRun, stats } = await configured({}, ready);
    expect(counts(stats())).toEqual({});
    const run = startRun({ name: 'ask' });
    expect(counts(stats())).toEqual({ created: 1, open: 1 });
    run.end({ answer: 42 });
    expect(counts(stats())).toEqual({ created: 1, queued: 1 });
    const flushed = flush();
    await server.arrived(1);
    expect(counts(stats())).toEqual({ created: 1, inFlight: 1 });
    ready.open();
    expect(await flushed).toEqual({ ok: true, pending: 0 });
    expect(counts(stats())).toEqual({ created: 1, sent: 1 });
    expect(stats().requests).toEqual({ multipart: 1, simple: 0, otlp: 0 });
  });

  test('counts runs excluded by sampling separately', async () => {
    const { server, flush, stats, traceable } = await configured({ sampler: ({ name }) => name !== 'health' });
    const inner = traceable(() => 1, { name: 'inner' });
    traceable(() => inner(), { name: 'health' })();
    traceable(() => inner(), { name: 'answer' })();
    await flush();
    expect(counts(stats())).toEqual({ created: 2, sent: 2, sampledOut: 2 });
    expect(Object.keys(arrivals(server.received)).sort()).toEqual(['answer', 'inner']);
  });
});

test('the delivery statistics cover all exporters, including closed ones', async () => {
  const [good, bad] = [await service(), await ingestServerInTest(() => ({ status: 400 }))];
  const { configure, createExporter, flush, shutdown, stats, traceable } = await freshPackage();
  expect(stats()).toMatchObject({ backlog: { bytes: 0, oldestMs: 0 } });
  expect([stats().latency, stats().lastError]).toEqual([undefined, undefined]);
  configure({ endpoint: good.url, log });
  const exporter = createExporter({ endpoint: bad.url, log, apiKey: 'canary-key' });
  traceable(() => 1)();
  traceable(() => 2, { exporter })();
  expect(stats().backlog.bytes).toBe(2 * exporter.stats().backlog.bytes);
  await flush({ timeoutMs: 500 });
  await shutdown({ timeoutMs: 10 });

  expect(stats()).toMatchObject({
    sent: 1,
    dropped: 1,
    backlog: { bytes: 0, oldestMs: 0 },
    latency: { p50Ms: expect.any(Number), p99Ms: expect.any(Number) },
    lastError: { message: 'status 400' },
  });
  expect(JSON.stringify(stats())).not.toContain('canary');
});

test('flush waits for every exporter', async () => {
  const ready = gate();
  const [quick, slow] = [await service(), await service(ready)];
  const { configure, createExporter, flush, stats, traceable } = await freshPackage();
  configure({ endpoint: quick.url, log });
  const exporter = createExporter({ endpoint: slow.url, log });
  traceable(() => 1, { exporter })();
  traceable(() => 2)();
  const flushed = flush();
  await slow.arrived(1);
  expect(await flush({ timeoutMs: 20 })).toEqual({ ok: false, pending: 1 });
  ready.open();
  expect(await flushed).toEqual({ ok: true, pending: 0 });
  expect(counts(stats())).toEqual({ created: 2, sent: 2 });
});

describe('configure, called again', () => {
  test('sends later runs elsewhere, and the old exporter delivers its own', async () => {
    const [first, second] = [await service(), await service()];
    const { configure, flush, startRun, stats, traceable, withRun } = await freshPackage();
    const child = traceable(() => 1, { name: 'child' });
    const old = configure({ endpoint: first.url, log });
    const open = startRun({ name: 'open' });
    traceable(() => 1, { name: 'before' })();
    const now = configure({ endpoint: second.url, log });
    traceable(() => 2, { name: 'after' })();
    withRun(open, child);
    expect(counts(stats())).toEqual({ created: 4, open: 1, queued: 3 });
    await flush();
    open.end();
    await flush();
    expect(arrivals(first.received)).toEqual({ open: 'post+patch', before: 'post', child: 'post' });
    expect(arrivals(second.received)).toEqual({ after: 'post' });
    expect([counts(old.stats()), counts(now.stats())]).toEqual([
      { created: 3, sent: 3 },
      { created: 1, sent: 1 },
    ]);
    expect(counts(stats())).toEqual({ created: 4, sent: 4 });
  });

  test('closes the old exporter after its last run is delivered, and keeps its counts', async () => {
    const disconnected: Promise<unknown>[] = [];
    const server = createServer((request, response) => request.resume().on('end', () => response.writeHead(202).end()));
    server.on('connection', (socket) => disconnected.push(once(socket, 'close')));
    const { configure, startRun, stats } = await freshPackage();
    const old = configure({ endpoint: await listenInTest(server), log });
    const run = startRun({ name: 'last' });
    configure({ tracing: false, log });
    startRun({ name: 'still taken', exporter: old }).end();
    run.end();
    expect(await old.flush()).toEqual({ ok: true, pending: 0 });
    await Promise.all(disconnected);
    startRun({ name: 'too late', exporter: old });
    expect(old.stats().droppedByReason.closed).toBe(1);
    expect(counts(old.stats())).toEqual({ created: 3, sent: 2, dropped: 1 });
    expect(counts(stats())).toEqual({ created: 3, sent: 2, dropped: 1 });
  });

  test('with another key delivers the runs of the refused key', async () => {
    const reply = ({ headers }: Received) => ({ status: headers['x-api-key'] === 'k-new' ? 202 : 401 });
    const server = await ingestServerInTest(reply);
    const { configure, createExporter, flush, stats, traceable } = await freshPackage();
    tune({ retryDelayMs: 1, retryDelayMaxMs: 1 });
    const shared = { endpoint: server.url, workspaceId: 'w-1', log } as const;
    const tenant = createExporter({ ...shared, apiKey: 'k-tenant' });
    traceable(() => 0, { exporter: tenant })();
    configure({ ...shared, apiKey: 'k-old' });
    traceable(() => 1)();
    await server.arrived(2);
    expect(await flush({ timeoutMs: 20 })).toEqual({ ok: false, pending: 2 });
    const elsewhere = configure({ ...shared, workspaceId: 'w-2', apiKey: 'k-new' });
    expect(await flush({ timeoutMs: 20 })).toEqual({ ok: false, pending: 2 });
    expect(elsewhere.stats().created).toBe(0);
    configure({ ...shared, apiKey: 'k-new' });
    traceable(() => 2)();
    await expect.poll(() => stats().sent).toBe(2);

    // That of the tenant keeps its own key.
    expect(counts(tenant.stats())).toEqual({ created: 1, inFlight: 1 });
    const workspaces = server.received
      .filter((request) => reply(request).status === 202)
      .map(({ headers }) => headers['x-tenant-id']);
    expect(new Set(workspaces)).toEqual(new Set(['w-1']));
    await tenant.close({ timeoutMs: 0 });
  });
});

test.each<[string, (key: string) => Partial<ConfigureOptions>, boolean]>([
  ['an API key', (apiKey) => ({ apiKey }), false],
  ['credentials in a header', (key) => ({ headers: { authorization: `Bearer ${key}` } }), false],
  ['none, then a function', (key) => (key === 'key-of-old' ? { apiKey: '' } : { apiKey: () => key }), false],
  ['the key of one workspace', (apiKey) => ({ apiKey, workspaceId: 'w' }), true],
  ['a function that returns a key', (key) => ({ apiKey: () => key }), true],
  ['a function that returns credentials', (key) => ({ headers: () => ({ authorization: `Bearer ${key}` }) }), true],
])(
  'runs that wait at a changed configuration are sent with the new key only if the tenant is the same: %s',
  async (_, optionsFor, isSame) => {
    const isNew = ({ headers }: Received) => JSON.stringify(headers).includes('key-of-new');
    const server = await ingestServerInTest((request) => ({ status: isNew(request) ? 202 : 401 }));
    const { configure, flush, shutdown, stats, traceable } = await freshPackage();
    configure({ endpoint: server.url, log, ...optionsFor('key-of-old') });
    traceable(() => 1, { name: 'old' })();
    expect((await flush({ timeoutMs: 50 })).ok).toBe(false);
    configure({ endpoint: server.url, log, ...optionsFor('key-of-new') });
    traceable(() => 1, { name: 'new' })();
    await shutdown({ timeoutMs: 2_500 });
    expect(stats().sent).toBe(isSame ? 2 : 1);
    expect(Object.keys(arrivals(server.received.filter(isNew))).sort()).toEqual(isSame ? ['new', 'old'] : ['new']);
  },
);

test('a run that the service stores before the connection breaks is delivered, although its repetition gets 409', async () => {
  const server = await ingestServerInTest(() => {
    const { length } = server.received;
    if (length === 2) server.disconnect();
    return { status: length === 3 ? 409 : 202 };
  });
  const { configure, flush, stats, traceable } = await freshPackage();
  configure({ endpoint: server.url, log });
  for (const n of [1, 2]) {
    traceable(() => 1, { name: 'given' }).with({ id: `01a22d70-5656-7471-9fee-6f1e8994bfa${n}` })();
    await flush();
  }
  expect(server.received).toHaveLength(3);
  expect(stats()).toMatchObject({ sent: 2, dropped: 0 });
});

test('createExporter receives the complete subtree of its runs, and no others', async () => {
  const [main, tenant] = [await service(), await service()];
  const { configure, createExporter, flush, stats, startRun, traceable, withRun } = await freshPackage();
  configure({ endpoint: main.url, log });
  const exporter = createExporter({ endpoint: tenant.url, project: 'tenant', log });
  const inner = traceable(async () => 1, { name: 'inner' });
  const apart = traceable(async () => inner(), { name: 'apart', exporter });
  await traceable(() => apart(), { name: 'outer' })();
  await withRun(startRun({ name: 'by hand', exporter }), inner);
  await flush();
  expect(arrivals(main.received)).toEqual({ outer: 'post' });
  expect(Object.keys(arrivals(tenant.received)).sort()).toEqual(['apart', 'by hand', 'inner']);
  expect(counts(exporter.stats())).toEqual({ created: 4, open: 1, sent: 3 });
  expect(counts(stats())).toEqual({ created: 5, open: 1, sent: 4 });
});

describe('shutdown', () => {
  test('delivers all runs, and counts later runs as dropped', async () => {
    const drops: string[] = [];
    const { server, shutdown, stats, traceable } = await configured({
      onDrop: (reason, run) => drops.push(`${reason} ${run.name}`),
    });
    const call = traceable(() => 1, { name: 'call' });
    call();
    expect(await shutdown()).toEqual({ ok: true, pending: 0 });
    expect(counts(stats())).toEqual({ created: 1, sent: 1 });
    expect(call()).toBe(1);
    expect(counts(stats())).toEqual({ created: 2, sent: 1, dropped: 1 });
    expect(stats().droppedByReason).toMatchObject({ closed: 1 });
    expect(drops).toEqual(['closed call']);
    expect(server.received).toHaveLength(1);
  });

  test('counts a run that ends later as dropped', async () => {
    const { shutdown, startRun, stats } = await configured();
    const run = startRun({ name: 'open' });
    await shutdown();
    expect(counts(stats())).toEqual({ created: 1, open: 1 });
    run.end();
    expect(counts(stats())).toEqual({ created: 1, dropped: 1 });
    startRun({ name: 'later' });
    expect(counts(stats())).toEqual({ created: 2, dropped: 2 });
    expect(stats().droppedByReason).toMatchObject({ closed: 2 });
  });

  test('may be called twice, and `configure` turns tracing on again', async () => {
    const { server, configure, flush, shutdown, stats, traceable } = await configured();
    traceable(() => 1, { name: 'before' })();
    expect(await Promise.all([shutdown(), shutdown()])).toEqual([
      { ok: true, pending: 0 },
      { ok: true, pending: 0 },
    ]);
    expect(await shutdown()).toEqual({ ok: true, pending: 0 });
    configure({ endpoint: server.url, log });
    traceable(() => 2, { name: 'after' })();
    await flush();
    expect(arrivals(server.received)).toEqual({ before: 'post', after: 'post' });
    expect(counts(stats())).toEqual({ created: 2, sent: 2 });
  });
});
