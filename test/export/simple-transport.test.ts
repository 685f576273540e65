import { describe, expect, it } from 'vitest';
import { delay } from '../../src/base/timers.ts';
import { Pace } from '../../src/export/pace.ts';
import { SimpleTransport, type SimpleTransportOptions } from '../../src/export/simple-transport.ts';
import type { Settlement } from '../../src/export/transport.ts';
import { ended, makeItem, makeRun } from '../support/encoded-run.ts';
import { clientOf } from '../support/http-client.ts';
import { ingestServer, type Received } from '../support/ingest-server.ts';
import { requestLog } from '../support/request-log.ts';
import { kindsOf, settled } from '../support/settled.ts';
import { virtualTime } from '../support/virtual-time.ts';

const ROOT = '01900000-0000-7000-8000-000000000001';
const monotonicMs = () => performance.now();
const simple = (url: string, options: Partial<SimpleTransportOptions> = {}) =>
  new SimpleTransport(
    clientOf(url),
    { inFlight: 4, requestsPerSecond: 1_000, pace: new Pace(monotonicMs), monotonicMs, delay, ...options },
    requestLog(),
  );
const json = ({ body }: Received) => JSON.parse(body.toString('utf8'));
const calls = (received: readonly Received[]) => received.map(({ method, path }) => `${method} ${path}`);

describe('SimpleTransport', () => {
  it('posts a run with its inputs and patches it with its outputs', async () => {
    await using server = await ingestServer();
    const run = ended(makeRun({ id: ROOT, inputs: '{"q":1}', project: 'docs' }), { outputs: '{"a":2}' });
    const settlements = await settled(simple(server.url), [makeItem(run)]);

    expect(kindsOf(settlements)).toEqual(['accepted']);
    expect(calls(server.received)).toEqual(['POST /runs', `PATCH /runs/${ROOT}`]);
    const [post, patch] = server.received.map(json);
    expect(post).toMatchObject({ id: ROOT, run_type: 'chain', inputs: { q: 1 }, session_name: 'docs' });
    expect(post).not.toHaveProperty('end_time');
    expect(post).not.toHaveProperty('outputs');
    expect(patch).toMatchObject({ outputs: { a: 2 }, end_time: '2026-01-02T03:04:06.000000Z' });
  });

  it('only posts a run that is open, and only patches one that was posted', async () => {
    await using server = await ingestServer();
    await settled(simple(server.url), [makeItem(makeRun({ id: ROOT }), 'started')]);
    await settled(simple(server.url), [makeItem(ended(makeRun({ id: ROOT })), 'patch')]);

    expect(calls(server.received)).toEqual(['POST /runs', `PATCH /runs/${ROOT}`]);
  });

  it('finishes a parent before it posts the child', async () => {
    await using server = await ingestServer();
    const parent = ended(makeRun());
    const child = ended(makeRun({}, parent));
    await settled(simple(server.url), [makeItem(child), makeItem(parent)]);

    expect(calls(server.received)).toEqual([
      'POST /runs',
      `PATCH /runs/${parent.id}`,
      'POST /runs',
      `PATCH /runs/${child.id}`,
    ]);
    expect(json(server.received[2] as Received).parent_run_id).toBe(parent.id);
  });

  it('has as many runs under way at once as it may, and no more', async () => {
    let underWay = 0;
    let most = 0;
    await using server = await ingestServer(async () => {
      most = Math.max(most, ++underWay);
      await server.arrived(3);
      // A fourth request that is on its way would be here by the end of another one's round trip.
      await clientOf(server.url).send({ method: 'GET', path: '/info' });
      underWay--;
      return { status: 202 };
    });
    const items = Array.from({ length: 9 }, () => makeItem(makeRun(), 'started'));
    await settled(simple(server.url, { inFlight: 3, requestsPerSecond: 1_000 }), items);

    expect(most).toBe(3);
  });

  it('lets one request begin in each share of a second', async () => {
    await using server = await ingestServer();
    const waitsMs: number[] = [];
    const delay = async (ms: number) => {
      waitsMs.push(ms);
    };
    const items = [1, 2, 3].map(() => makeItem(makeRun(), 'started'));
    await settled(simple(server.url, { inFlight: 4, requestsPerSecond: 2, monotonicMs: () => 0, delay }), items);

    expect(waitsMs).toEqual([500, 1_000]);
  });

  it('does not make up for time in which the process slept [fault 40]', async () => {
    await using server = await ingestServer();
    const time = virtualTime(true);
    const pace = new Pace(time.monotonicMs, time);
    const transport = simple(server.url, { requestsPerSecond: 2, pace, ...time });
    await settled(transport, [makeItem(makeRun(), 'started')]);
    time.advance(3_600_000);
    await settled(
      transport,
      [1, 2, 3].map(() => makeItem(makeRun(), 'started')),
    );

    expect(time.waits[0]).toBe(500);
    expect(time.waits).toHaveLength(2);
    expect(time.monotonicMs()).toBeGreaterThanOrEqual(3_601_000);
  });

  it.each([
    [500, 1],
    [500, 4],
    [429, 1],
    [503, 4],
  ])('that answers %i is not asked for the rest of a batch, %i at a time [fault 115]', async (status, inFlight) => {
    await using server = await ingestServer(() => ({ status }));
    const items = Array.from({ length: 50 }, () => makeItem());
    const settlements = await settled(simple(server.url, { inFlight }), items);

    expect(settlements).toHaveLength(50);
    expect(new Set(kindsOf(settlements))).toEqual(new Set(['failed']));
    // Three in a row, and those that were under way with the third.
    expect(server.received.length).toBeLessThanOrEqual(3 + inFlight - 1);
  });

  it('goes on with the others when it fails for two in a row [fault 115]', async () => {
    const items = Array.from({ length: 9 }, () => makeItem(makeRun(), 'started'));
    const bad = new Set([1, 2, 4, 5, 7, 8].map((at) => items[at]?.delivery.run.id ?? ''));
    await using server = await ingestServer((request) => ({ status: bad.has(json(request).id) ? 500 : 202 }));
    const settlements = await settled(simple(server.url, { inFlight: 1 }), items);

    expect(kindsOf(settlements).filter((kind) => kind === 'accepted')).toHaveLength(3);
    expect(server.received).toHaveLength(9);
  });

  it('begins no request while the service has asked for a pause', async () => {
    await using server = await ingestServer((_, index) =>
      index === 0 ? { status: 429, headers: { 'retry-after': '60' } } : { status: 202 },
    );
    const ends = new AbortController();
    const pace = new Pace(monotonicMs);
    const items = [1, 2, 3].map(() => makeItem(makeRun(), 'started'));
    const sending = settled(simple(server.url, { inFlight: 1, pace }), items, ends.signal);
    await server.arrived(1);
    while (pace.remainingMs === 0) await new Promise((resolve) => setImmediate(resolve));
    ends.abort(new Error('enough'));

    expect(kindsOf(await sending)).toEqual(['failed', 'failed', 'failed']);
    expect(server.received).toHaveLength(1);
  });

  it('tells what became of each run at once, whichever comes first', async () => {
    const slow = ended(makeRun());
    await using server = await ingestServer(({ body }) => (body.includes(slow.id) ? 'hold' : { status: 202 }));
    const ends = new AbortController();
    const items = [makeItem(slow), makeItem(), makeItem()];
    const known: unknown[] = [];
    for await (const settlement of simple(server.url).send(items, ends.signal)) {
      known.push(settlement.items[0]);
      if (known.length === 2) ends.abort(new Error('enough'));
    }

    expect(new Set(known.slice(0, 2))).toEqual(new Set([items[1], items[2]]));
    expect(known[2]).toBe(items[0]);
  });

  it('does not repeat inputs that it has posted when the patch is too large', async () => {
    await using server = await ingestServer(({ method }, index) => ({
      status: method === 'PATCH' && index === 1 ? 413 : 202,
    }));
    const item = makeItem(ended(makeRun({ inputs: '{"q":1}' }), { outputs: '{"a":1}' }));
    await settled(simple(server.url), [item]);
    item.stripped = 'payloads';
    await settled(simple(server.url), [item]);

    expect(server.received.map(json).map(({ inputs }) => inputs)).toEqual([{ q: 1 }, undefined, undefined]);
  });

  it('pauses once for as long as the service asks', async () => {
    await using server = await ingestServer((_, index) =>
      index === 0 ? { status: 429, headers: { 'retry-after': '1' } } : { status: 202 },
    );
    const [{ outcome } = { outcome: undefined }] = await settled(simple(server.url), [makeItem(makeRun(), 'started')]);

    expect(outcome).toEqual({ kind: 'failed', detail: 'status 429' });
  });

  it('sends inputs that were set after the run was posted with the patch', async () => {
    await using server = await ingestServer();
    await settled(simple(server.url), [makeItem(ended(makeRun({ inputs: '{"q":2}' })), 'patch')]);
    await settled(simple(server.url), [makeItem(ended(makeRun({ inputs: '{"q":1}' })))]);

    expect(server.received.map(json).map(({ inputs }) => inputs)).toEqual([{ q: 2 }, { q: 1 }, undefined]);
  });

  it('sends only the patch when it failed after its post was accepted', async () => {
    await using server = await ingestServer(({ method }, index) => ({
      status: method === 'PATCH' && index < 2 ? 503 : 202,
    }));
    const item = makeItem(ended(makeRun({ id: ROOT })));

    expect(kindsOf(await settled(simple(server.url), [item]))).toEqual(['failed']);
    expect(kindsOf(await settled(simple(server.url), [item]))).toEqual(['accepted']);
    expect(calls(server.received)).toEqual(['POST /runs', `PATCH /runs/${ROOT}`, `PATCH /runs/${ROOT}`]);
  });

  it('does not patch a run whose post was not accepted', async () => {
    await using server = await ingestServer(() => ({ status: 422 }));

    expect(kindsOf(await settled(simple(server.url), [makeItem()]))).toEqual(['invalid']);
    expect(calls(server.received)).toEqual(['POST /runs']);
  });

  it.each([
    [3, ['failed', 'failed', 'failed', 'accepted']],
    [4, ['failed', 'failed', 'failed', 'dropped']],
  ])(
    'patches again a run that the service did not know %i times, three times at the most [fault 7]',
    async (times, kinds) => {
      let patches = 0;
      await using server = await ingestServer(({ method }) => ({
        status: method === 'PATCH' && ++patches <= times ? 404 : 202,
      }));
      const transport = simple(server.url);
      const item = makeItem();
      const settlements: Settlement[] = [];
      while (settlements.length < 4) settlements.push(...(await settled(transport, [item])));

      expect(kindsOf(settlements)).toEqual(kinds);
      expect(calls(server.received).filter((call) => call.startsWith('POST'))).toHaveLength(1);
      if (times === 4) {
        expect(settlements[3]?.outcome).toEqual({ kind: 'dropped', reason: 'rejected', detail: 'status 404' });
      }
    },
  );

  it('reports an unreachable service as failed', async () => {
    const server = await ingestServer();
    await server.close();

    expect(kindsOf(await settled(simple(server.url), [makeItem()]))).toEqual(['failed']);
  });
});
