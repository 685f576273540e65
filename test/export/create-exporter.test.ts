import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { createReceiver } from '../../src/receiver.ts';
import { addsUp } from '../support/adds-up.ts';
import { exporterTo, record } from '../support/delivering.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { gate } from '../support/gate.ts';
import { ingestServer, type Received } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { told } from '../support/told.ts';
import { virtualTime } from '../support/virtual-time.ts';

const calls = (received: readonly Received[]) => received.map(({ method, path }) => `${method} ${path}`);

beforeEach(() => void told());

describe('an exporter and a receiver', () => {
  it('deliver every run over multipart, to a receiver that takes the interface alone', async () => {
    const receiver = await createReceiver({ strict: true });
    const exporter = exporterTo(receiver.url, { batchRuns: 7 });
    const ids = record(exporter, 50);
    expect(await exporter.close()).toEqual({ ok: true, pending: 0 });
    const runs = await receiver.runs();
    await receiver.close();

    expect(runs.map(({ id }) => id).sort()).toEqual(ids.sort());
    expect(runs.every(({ outputs, end_time }) => outputs?.ok === true && end_time !== undefined)).toBe(true);
    expect(exporter.stats()).toMatchObject({ created: 100, sent: 100, dropped: 0, requests: { simple: 0 } });
  });

  it('deliver a run that is posted and patched apart', async () => {
    const receiver = await createReceiver({ strict: true });
    const exporter = exporterTo(receiver.url);
    const run = makeRun({ inputs: '{"q":1}' });
    exporter.start(run);
    await exporter.flush();
    expect((await receiver.runs())[0]).not.toHaveProperty('end_time');
    exporter.end(ended(run, { outputs: '{"a":1}' }));
    await exporter.close();
    const [stored] = await receiver.runs();
    await receiver.close();

    expect(stored).toMatchObject({ inputs: { q: 1 }, outputs: { a: 1 }, end_time: '2026-01-02T03:04:06.000000Z' });
  });
});

describe('an exporter and a service without multipart ingestion', () => {
  it.each([404, 405, 501])(
    'sends the same runs one by one after status %i, each post before its patch [fault 6]',
    async (status) => {
      await using server = await ingestServer(({ path }) => ({ status: path.endsWith('/multipart') ? status : 202 }));
      const exporter = exporterTo(server.url, { simpleRequestsPerSecond: 1_000 });
      const ids = record(exporter, 5);
      await exporter.close();
      const singles = calls(server.received).filter((call) => !call.endsWith('multipart'));

      expect(exporter.stats()).toMatchObject({ created: 10, sent: 10, requests: { multipart: 1, simple: 20 } });
      const posted = server.received.filter(({ path }) => path === '/runs').map(({ body }) => JSON.parse(`${body}`).id);
      expect(posted.sort()).toEqual(ids.sort());
      const order = server.received.map(({ method, body }) => `${method} ${method === 'GET' ? '' : idOf(body)}`);
      for (const id of ids) expect(order.indexOf(`POST ${id}`)).toBeLessThan(order.indexOf(`PATCH ${id}`));
      expect(singles).toHaveLength(20);
    },
  );

  it('keeps the runs and leaves the service alone when neither way is there [fault 8]', async () => {
    await using server = await ingestServer(() => ({ status: 404 }));
    const exporter = exporterTo(server.url);
    record(exporter, 1);
    await server.arrived(2);

    expect(await exporter.flush({ timeoutMs: 300 })).toEqual({ ok: false, pending: 2 });
    expect(await exporter.close({ timeoutMs: 0 })).toEqual({ ok: false, pending: 2 });
    expect(exporter.stats()).toMatchObject({ dropped: 2, droppedByReason: { closed: 2 } });
  });
});

describe('an exporter and a service in trouble', () => {
  it('delivers everything once a service that was down is there [fault 22]', async () => {
    const port = await freePort();
    const failing = gate();
    const exporter = exporterTo(`http://127.0.0.1:${port}`, {}, { log: () => failing.open() });
    const ids = record(exporter, 20);
    await failing;
    const receiver = await createReceiver({ port, strict: true });
    expect(await exporter.close()).toEqual({ ok: true, pending: 0 });
    const runs = await receiver.runs();
    await receiver.close();

    expect(runs.map(({ id }) => id).sort()).toEqual(ids.sort());
    expect(exporter.stats()).toMatchObject({ sent: 40, dropped: 0 });
  });

  it.each([
    [408, 9],
    [425, 14],
    [429, 18],
    [500, 19],
    [502, 19],
    [503, 19],
    [504, 19],
    [507, 19],
    [520, 19],
    [599, 19],
  ])('sends again after status %i [fault %i]', async (status) => {
    await using server = await ingestServer((_, index) => ({ status: index === 0 ? status : 202 }));
    const exporter = exporterTo(server.url);
    record(exporter, 1);
    await exporter.close();

    expect(calls(server.received)).toEqual(['POST /runs/multipart', 'POST /runs/multipart']);
    expect(exporter.stats()).toMatchObject({ sent: 2, dropped: 0 });
  });

  it('sends the same runs again when the answer was lost, and takes 409 for delivered [fault 10]', async () => {
    await using server = await ingestServer((_, index) => (index === 0 ? 'hold' : { status: 409 }));
    const exporter = exporterTo(server.url, { requestTimeoutMs: 50 });
    record(exporter, 1);
    await exporter.close();
    const [first, second] = server.received.map((request) => [...readJsonParts(request).keys()]);

    expect(second).toEqual(first);
    expect(exporter.stats()).toMatchObject({ sent: 2 });
  });

  it.each([
    [400, 3],
    [422, 13],
  ])('costs only the run that the service rejects with status %i [fault %i]', async (status) => {
    const poison = randomUUID();
    await using server = await ingestServer(({ body }) => ({ status: body.includes(poison) ? status : 202 }));
    const exporter = exporterTo(server.url);
    record(exporter, 10);
    const run = makeRun({ id: poison });
    exporter.start(run);
    exporter.end(ended(run));
    await exporter.close();

    expect(exporter.stats()).toMatchObject({ created: 21, sent: 20, dropped: 1, droppedByReason: { rejected: 1 } });
  });

  it('fits its batches to what the service takes [fault 11]', async () => {
    await using server = await ingestServer(({ body }) => ({ status: body.length > 4_000 ? 413 : 202 }));
    const exporter = exporterTo(server.url);
    record(exporter, 10);
    const large = makeRun({ inputs: JSON.stringify({ text: 'x'.repeat(10_000) }) });
    exporter.start(large);
    exporter.end(ended(large));
    await exporter.close();
    const parts = new Map(
      server.received.filter(({ body }) => body.length <= 4_000).flatMap((r) => [...readJsonParts(r)]),
    );

    expect(exporter.stats()).toMatchObject({ created: 21, sent: 21, dropped: 0 });
    expect(parts.get(`post.${large.id}.inputs`)).toHaveProperty('runspan');
  });

  it('sends no key and no run to where a service redirects [fault 2]', async () => {
    await using elsewhere = await ingestServer();
    await using server = await ingestServer(() => ({ status: 307, headers: { location: `${elsewhere.url}/runs` } }));
    const exporter = exporterTo(server.url, {}, { apiKey: 'k-1' }, virtualTime(true));
    record(exporter, 1);
    expect(await exporter.flush({ timeoutMs: 25_000 })).toEqual({ ok: false, pending: 2 });
    await exporter.close({ timeoutMs: 0 });

    expect(server.received[0]?.headers['x-api-key']).toBe('k-1');
    expect(elsewhere.received).toHaveLength(0);
  });

  it.each([
    ['the key is rejected', { apiKey: 'k-1' }, 'the API key was rejected'],
    ['other credentials are', { headers: { Authorization: 'Bearer t-1' } }, 'the API key was rejected'],
    ['no key is set', {}, 'the service asks for an API key, and none is sent'],
  ])('keeps the runs when %s, and says so once', async (_, credentials, problem) => {
    const lines: string[] = [];
    await using server = await ingestServer(() => ({ status: 401 }));
    const exporter = exporterTo(
      server.url,
      { batchRuns: 1 },
      { ...credentials, log: (level: string, line: string) => level === 'warn' && lines.push(line) },
    );
    record(exporter, 1);
    await server.arrived(1);

    expect(await exporter.flush({ timeoutMs: 300 })).toEqual({ ok: false, pending: 2 });
    expect(lines).toEqual([
      `delivery to ${server.url} failed: status 401: ${problem}; ` +
        'the runs are kept, and the next attempts are after 1 s, 5 s, 30 s, up to 5 minutes',
    ]);
    await exporter.close({ timeoutMs: 0 });
  });

  it.each([
    ['multipart', 202],
    ['single runs', 404],
  ])(
    'drops a run that is longer than a string can be, sent by %s, and delivers the others [fault 87]',
    async (_, status) => {
      await using server = await ingestServer(({ path }) => ({ status: path === '/runs/multipart' ? status : 202 }));
      const dropped: unknown[] = [];
      const exporter = exporterTo(
        server.url,
        { batchBytes: 2 ** 31, queueBytes: 2 ** 31, simpleRequestsPerSecond: 1_000 },
        {
          onDrop: (reason: string, run: { name: string; detail?: string }) =>
            dropped.push([reason, run.name, run.detail]),
        },
      );
      record(exporter, 2);
      // By which way they go has shown when the others come.
      await exporter.flush();
      record(exporter, 2);
      const half = `"${'x'.repeat(2 ** 28)}"`;
      const huge = makeRun({
        name: 'huge',
        metadata: new Map([
          ['a', half],
          ['b', half],
        ]),
      });
      exporter.start(huge);
      exporter.end(ended(huge));

      expect(await exporter.close({ timeoutMs: 10_000 })).toEqual({ ok: true, pending: 0 });
      expect(dropped).toEqual([['rejected', 'huge', 'Invalid string length']]);
      expect(exporter.stats()).toMatchObject({ created: 9, sent: 8, dropped: 1 });
    },
  );

  it('keeps its ledger through a service that fails at random, and delivers everything', async () => {
    let seed = 7;
    const random = (): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed / 2_147_483_648;
    };
    await using server = await ingestServer(() => ({ status: random() < 0.4 ? 503 : 202 }));
    const exporter = exporterTo(server.url, { batchRuns: 5 });
    const ids = new Set(record(exporter, 100));
    await exporter.close();
    for (const request of server.received) {
      for (const name of readJsonParts(request).keys()) ids.delete(name.slice('post.'.length));
    }

    expect(ids.size).toBe(0);
    expect(addsUp(exporter.stats())).toBe(true);
    expect(exporter.stats()).toMatchObject({ created: 200, sent: 200 });
  });
});

function idOf(body: Buffer): string {
  const { id } = body.toString('latin1').startsWith('{') ? JSON.parse(body.toString('utf8')) : { id: '' };
  return id;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
