// Services without multipart ingestion, and `GET /info`.
import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createPlatform } from '#src/testing.ts';
import { cases, forAllAsync } from '../support/campaign.ts';
import { advance, delivery, finished, onFlush, until } from '../support/delivery.ts';
import { gate } from '../support/gate.ts';
import type { Reply, ServiceInfo, Verdict } from '../support/scripted-service.ts';
import { virtualClock } from '../support/virtual-timers.ts';

/** Refuses multipart requests, and responds to single runs with the given function. */
const simple =
  (reply: Reply = () => 202): Reply =>
  (request, index) =>
    request.isMultipart ? 405 : reply(request, index);

const info = (body: unknown): ServiceInfo => ({ status: 200, body: JSON.stringify(body) });

describe('a service without multipart ingestion', () => {
  it.each([404, 405, 501, 415])(
    'that responds with %i receives single runs, each post before its patch',
    async (status) => {
      const { start, flush, service, stats } = await delivery({
        limits: onFlush,
        reply: ({ isMultipart }) => (isMultipart ? status : 202),
      });
      const parent = start('parent', { inputs: { q: 1 } });
      const child = start('child', { inputs: { q: 2 } }, parent);
      child.end({ a: 2 });
      parent.end({ a: 1 });
      await flush();

      const routes = ['POST /runs', 'PATCH /runs/'];
      expect(service.routes).toEqual(['POST /runs/multipart', ...routes, ...routes]);
      expect(service.batches.slice(1)).toEqual([['start parent'], ['end parent'], ['start child'], ['end child']]);
      const [, post, patch] = service.arrivals('child');
      expect(service.requests.at(-1)?.path).toBe(`/runs/${child.id}`);
      expect(post?.fields).toMatchObject({ id: child.id, parent_run_id: parent.id, inputs: { q: 2 } });
      expect(post?.fields).not.toHaveProperty('outputs');
      expect(patch?.fields).toMatchObject({ outputs: { a: 2 }, end_time: expect.any(String) });
      expect(patch?.fields).not.toHaveProperty('inputs');
      expect(stats()).toMatchObject({ sent: 2, dropped: 0 });
    },
  );

  it('that is strict accepts also a run that was open when it was posted', async () => {
    const platform = await createPlatform();
    onTestFinished(() => platform.close());
    platform.next(/multipart$/, () => ({ status: 405 }));
    const options = { apiKey: platform.apiKey };
    const { start, flush, drops } = await delivery({ limits: onFlush, endpoint: platform.url, options });
    const run = start('ask', { inputs: { q: 1 } });
    await flush();
    run.event('token');
    run.end({ a: 1 });
    await flush();

    expect(drops).toEqual([]);
    expect(platform.requests.map(({ method }) => method)).toEqual(['GET', 'POST', 'POST', 'PATCH']);
    expect(await platform.runs()).toMatchObject([{ inputs: { q: 1 }, outputs: { a: 1 }, events: [{ name: 'token' }] }]);
  });

  it('receives multipart again after 1 s, 5 s, 30 s, 2 min, 5 min, then every 10 minutes', async () => {
    const { whole, flush, service } = await delivery({ limits: onFlush, reply: simple() });
    // Each second for a minute, then each half of a minute.
    for (let count = 0; count < 60 + 90; count++) {
      whole();
      await flush();
      await advance(count < 60 ? 1_000 : 30_000);
    }
    const asked = service.requests.filter(({ isMultipart }) => isMultipart).map(({ atMs }) => atMs / 1_000);
    const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));

    for (const [index, seconds] of [1, 5, 30, 120, 300, 600, 600].entries()) {
      expect(gaps[index]).toBeGreaterThanOrEqual(seconds);
      expect(gaps[index]).toBeLessThan(seconds + 32);
    }
  });

  it('receives the rest of a batch as multipart once it accepts that again', async () => {
    const { wholes, flush, service, stats } = await delivery({
      limits: onFlush,
      reply: (_, index) => (index === 0 ? 404 : 202),
    });
    wholes(100);
    await flush();

    expect(stats()).toMatchObject({ sent: 100, requests: { multipart: 2 } });
    expect(service.requests.length).toBeLessThan(90);
    expect(service.requests.at(-1)?.isMultipart).toBe(true);
  });

  it('receives at most 50 requests per second, also after the machine has slept', async () => {
    let sleptMs = 0;
    const { wholes, flush, service } = await delivery({
      limits: onFlush,
      reply: simple(),
      time: { monotonicMs: () => virtualClock.nowMs + sleptMs },
    });
    const perSecond = async (): Promise<void> => {
      const { length } = service.requests;
      wholes(20);
      await flush();
      const times = service.requests.slice(length).filter(({ isMultipart }) => !isMultipart);
      for (const [at, { atMs }] of times.entries()) {
        const later = times[at + 10];
        if (later !== undefined) expect(later.atMs - atMs).toBeGreaterThanOrEqual(199);
      }
    };
    await perSecond();
    sleptMs = 3_600_000;
    service.reply = () => 202;
    wholes(1);
    await flush();
    service.reply = simple();
    await perSecond();
  });

  it('receives at most 4 runs at once', async () => {
    const held = gate<number>();
    const { wholes, exporter, service } = await delivery({ limits: onFlush, reply: simple(() => held) });
    wholes(9);
    const flushed = exporter.flush();
    await advance(900);
    expect(service.requests.filter(({ isMultipart }) => !isMultipart)).toHaveLength(4);
    held.open(202);
    await finished(flushed);
  });

  it('receives no request during a requested pause', async () => {
    const { start, service, stats } = await delivery({
      limits: { batchRuns: 3 },
      reply: simple((_, index) => (index === 1 ? { status: 429, headers: { 'retry-after': '60' } } : 202)),
    });
    const root = start();
    for (const run of [start('one', {}, root), start('two', {}, root), root]) run.end();
    await advance(59_000);
    expect(service.requests).toHaveLength(2);
    await until(() => stats().sent === 3);
  });

  it('that fails at any one request receives again only records that it has not accepted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 10 }), async (failing) => {
        const { wholes, flush, close, service, stats } = await delivery({
          limits: onFlush,
          reply: simple((_, index) => (index === failing ? 503 : 202)),
        });
        wholes(5);
        await flush();
        const calls = service.requests
          .filter(({ isMultipart }) => !isMultipart)
          .map(({ method, arrivals: [run] }) => `${method} ${run?.id}`);

        expect(stats()).toMatchObject({ sent: 5, dropped: 0 });
        // One call twice, and every other once.
        expect(calls).toHaveLength(11);
        expect(new Set(calls).size).toBe(10);
        await close();
      }),
      { numRuns: 10 },
    );
  });

  it('receives the patch of an unknown run two more times, and its post once', async () => {
    for (const [unknown, isDelivered] of [
      [2, true],
      [3, false],
    ] as const) {
      let patches = 0;
      const { whole, others, service, details, stats } = await delivery({
        limits: { batchRuns: 1 },
        reply: simple(({ method, names }) =>
          method === 'PATCH' && names[0] === 'end ask' && ++patches <= unknown ? 404 : 202,
        ),
      });
      whole('ask');
      await others();

      expect(stats().sent).toBe(isDelivered ? 4 : 3);
      expect(details).toEqual(isDelivered ? [] : ['status 404 for a run that was accepted before']);
      expect(service.requests.filter(({ names: [name] }) => name === 'start ask')).toHaveLength(1);
    }
  });

  it('receives no patch of a run whose post it refuses', async () => {
    const { whole, others, service, drops } = await delivery({
      limits: onFlush,
      reply: simple(({ names }) => (names[0]?.endsWith('bad') ? 422 : 202)),
    });
    whole('bad');
    await others();

    const bad = service.requests.filter(({ names, isMultipart }) => !isMultipart && names[0]?.endsWith('bad'));
    expect(bad.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'POST']);
    expect(drops).toEqual(['rejected bad']);
  });

  it('receives a patch that is too large again without payloads, and without inputs', async () => {
    const { whole, flush, service, stats } = await delivery({
      limits: onFlush,
      reply: simple(({ method, arrivals: [run] }) => (method === 'PATCH' && run?.fields.outputs?.a === 1 ? 413 : 202)),
    });
    whole('ask', { inputs: { q: 1 } }, { a: 1 });
    await flush();

    expect(service.routes.slice(1)).toEqual(['POST /runs', 'PATCH /runs/', 'PATCH /runs/']);
    expect(service.arrivals('ask').at(-1)?.fields).not.toHaveProperty('inputs');
    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  });

  it('and without `POST /runs` is probed as after 401, and one line contains both routes', async () => {
    const { whole, flush, service, lines, stats } = await delivery({ limits: onFlush, reply: () => 404 });
    whole();
    expect(await flush()).toEqual({ ok: false, pending: 1 });
    expect(lines).toEqual([expect.stringMatching(/\/runs\/multipart.*\/runs/)]);
    expect(service.requests.length).toBeLessThanOrEqual(8);
    service.reply = () => 202;
    await flush();
    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  });
});

describe('GET /info', () => {
  /** The largest batches, in runs and in bytes, that runs are sent in once the service has answered. */
  async function largest(answer: ServiceInfo, runs: number, length = 0): Promise<{ runs: number; bytes: number }> {
    const { whole, flush, service, close } = await delivery({ limits: onFlush, info: answer });
    whole('first');
    await flush();
    for (let count = 0; count < runs; count++) whole('r', { inputs: { text: 'x'.repeat(length) } });
    await flush();
    const later = service.requests.slice(1);
    await close();
    return {
      runs: Math.max(...later.map(({ arrivals }) => arrivals.length)),
      bytes: Math.max(...later.map(({ body }) => body.length)),
    };
  }

  const limits = (size_limit: unknown, size_limit_bytes: unknown = 1e7) =>
    info({ batch_ingest_config: { size_limit, size_limit_bytes } });

  it.each<[unknown, number]>([
    [0, 1],
    [2, 2],
    [-5, 1],
    [1e9, 600],
    ['10', 500],
    [null, 500],
  ])('with the size limit %j leads to batches of %i runs', async (given, taken) => {
    expect((await largest(limits(given), taken < 3 ? 5 : 600)).runs).toBe(taken);
  });

  it.each([
    [1, 1, 70_000],
    [70_000, 1, 50_000],
    [200_000, 3, 60_000],
  ])('with the size limit %i bytes leads to batches of %i runs of %i bytes', async (given, runs, length) => {
    const found = await largest(limits(100, given), 6, length);
    expect(found.runs).toBe(runs);
    if (runs > 1) expect(found.bytes).toBeLessThanOrEqual(given);
  });

  it('may return anything, and runs arrive', async () => {
    const size = fc.json().map((json) => `{"batch_ingest_config":{"size_limit":${json},"size_limit_bytes":${json}}}`);
    const odd = fc.constantFrom('<html>', '{"__proto__":{"batch_ingest_config":{"size_limit":5}}}', '', 'null');
    await forAllAsync(
      40,
      [fc.oneof(fc.json(), size, odd), fc.constantFrom(200, 404, 500, 301)],
      async (body, status) => {
        const { wholes, flush, close, stats } = await delivery({ limits: onFlush, info: { status, body } });
        wholes(1);
        await flush();
        wholes(5);
        await flush();
        expect(stats()).toMatchObject({ sent: 6, dropped: 0 });
        await close();
      },
    );
  });

  it.each<[string, ServiceInfo]>([
    ['a missing page', 404],
    ['an error', { status: 500, body: '{"batch_ingest_config":{"size_limit":5}}' }],
    ['no JSON', { status: 200, body: '<html>' }],
    ['a body beyond 64 KiB', info({ batch_ingest_config: { size_limit: 5 }, filler: 'x'.repeat(70_000) })],
  ])('that returns %s changes no default', async (_, answer) => {
    expect((await largest(answer, 550)).runs).toBe(500);
  });

  it('delays no request, and has a timeout of two seconds', async () => {
    const { whole, flush, service } = await delivery({ info: 'hold' });
    whole();
    await flush();
    expect(service.requests).toHaveLength(1);
    expect(virtualClock.nowMs).toBeLessThan(2_000);
    await advance(70_000);
    whole();
    await flush();
    expect(service.infoRequests).toBe(2);
  });

  it.each<[ServiceInfo, number, number]>([
    // A connection that breaks is tried twice.
    [503, 30, 36],
    ['reset', 60, 72],
    [{ status: 200, body: '<html>' }, 30, 36],
    [401, 30, 36],
    [302, 30, 36],
    [404, 1, 1],
    [405, 1, 1],
    [info({ batch_ingest_config: { size_limit: 5 } }), 1, 1],
  ])('that returns %j is requested %i to %i times in 35 minutes', async (answer, least, most) => {
    const { whole, flush, service } = await delivery({ limits: onFlush, info: answer });
    for (let minute = 0; minute < 70; minute++) {
      whole();
      await flush();
      await advance(30_000);
    }
    expect(service.infoRequests).toBeGreaterThanOrEqual(least);
    expect(service.infoRequests).toBeLessThanOrEqual(most);
  });

  it('is requested again once the service accepts runs, whatever it responded before', async () => {
    const statuses = fc.constantFrom(301, 400, 401, 402, 403, 407, 423, 451, 500, 502, 503, 511, 520);
    const property = fc.asyncProperty(statuses, fc.nat(3), async (status, flushes) => {
      let reply: number = status;
      const five = info({ batch_ingest_config: { size_limit: 5 } });
      const setup = { limits: onFlush, info: () => (reply === 202 ? five : reply) as Verdict, reply: () => reply };
      const { whole, wholes, flush, service, stats, close } = await delivery(setup);
      whole();
      for (let count = 0; count <= flushes; count++) await flush();
      reply = 202;
      await until(() => stats().sent === 1);
      wholes(12);
      await flush();
      expect(service.batches.slice(-3).map(({ length }) => length)).toEqual([5, 5, 2]);
      await close();
    });
    await fc.assert(property, { numRuns: cases(40) });
  });

  it('that disables multipart leads to single runs, until multipart is tried again', async () => {
    const { whole, flush, service } = await delivery({
      limits: onFlush,
      info: info({ batch_ingest_config: { use_multipart_endpoint: false } }),
    });
    whole('first');
    await flush();
    whole('second');
    await flush();
    await advance(2_000);
    whole('third');
    await flush();

    expect(service.routes).toEqual(['POST /runs/multipart', 'POST /runs', 'PATCH /runs/', 'POST /runs/multipart']);
  });
});
