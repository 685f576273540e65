// A whole exporter, in a time of its own, before services that answer as they should not.
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Exporter } from '../../src/export/exporter.ts';
import { addsUp } from '../support/adds-up.ts';
import { exporterTo, record, recordSingles } from '../support/delivering.ts';
import { ended, makeRun } from '../support/encoded-run.ts';
import { ingestServer, type Received } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { told } from '../support/told.ts';
import { turns, until, virtualTime } from '../support/virtual-time.ts';

const partsOf = (received: readonly Received[]): string[] =>
  received.filter(({ path }) => path.endsWith('/multipart')).flatMap((request) => [...readJsonParts(request).keys()]);

/** The ids of runs whose posts came, each as often as it came. */
const posted = (received: readonly Received[]): string[] =>
  partsOf(received)
    .filter((name) => /^post\.[^.]+$/.test(name))
    .map((name) => name.slice('post.'.length));

const isSettled = (exporter: Exporter) => (): boolean => {
  const { created, sent, dropped } = exporter.stats();
  return created === sent + dropped;
};

const one = { batchRuns: 1, requestsInFlight: 1 };

describe('a service that asks to wait', () => {
  it.each([
    { status: 429, after: '120', fault: 15 },
    { status: 503, after: '120', fault: 19 },
    { status: 429, after: 'Fri, 20 Nov 2026 09:02:00 GMT', fault: 16 },
  ])(
    'by $status and $after is left alone until then and up to a tenth longer [fault $fault]',
    async ({ status, after }) => {
      told();
      let isBusy = true;
      const headers = { 'retry-after': after, date: 'Fri, 20 Nov 2026 09:00:00 GMT' };
      await using server = await ingestServer(() => (isBusy ? { status, headers } : { status: 202 }));
      const time = virtualTime(false, 0.5);
      const exporter = exporterTo(server.url, { batchRuns: 1, ageMs: 60_000 }, {}, time);
      recordSingles(exporter, 10);
      await server.arrived(4);
      await until(() => time.sleepers === 4);
      isBusy = false;
      time.advance(125_999);
      await turns();
      expect(server.received).toHaveLength(4);
      time.advance(1);
      await until(isSettled(exporter));

      expect(exporter.stats()).toMatchObject({ sent: 10, dropped: 0, requests: { multipart: 14 } });
      await exporter.close();
    },
  );
});

describe('a service that rejects the key', () => {
  it.each([
    [401, 4],
    [403, 5],
  ])('by %i is probed once per pause and loses no run [fault %i]', async (status) => {
    const lines: string[] = [];
    let isRejected = true;
    await using server = await ingestServer(() => ({ status: isRejected ? status : 202 }));
    const time = virtualTime();
    const log = (level: string, line: string) => void (level === 'warn' && lines.push(line));
    const exporter = exporterTo(server.url, { ...one, ageMs: 60_000 }, { log, apiKey: 'k-1' }, time);
    recordSingles(exporter, 3);
    for (const [at, pauseMs] of [1_000, 5_000, 30_000].entries()) {
      await until(() => server.received.length === at + 1 && time.sleepers > 0);
      time.advance(pauseMs - 1);
      await turns();
      expect(server.received).toHaveLength(at + 1);
      if (at === 2) isRejected = false;
      time.advance(1);
    }
    await until(isSettled(exporter));

    expect(exporter.stats()).toMatchObject({ sent: 3, dropped: 0 });
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`failed: status ${status}: the API key was rejected; .*5 minutes$`)),
      `delivery to ${server.url} works again`,
    ]);
    await exporter.close();
  });
});

describe('a service that fails for one run', () => {
  it('in each of five batches costs the others nothing but a detour [fault 21]', async () => {
    told();
    const poison = new Set<string>(Array.from({ length: 5 }, () => randomUUID()));
    const isBad = ({ body }: Received): boolean => [...poison].some((id) => body.includes(id));
    await using server = await ingestServer((request) => ({ status: isBad(request) ? 500 : 202 }));
    const time = virtualTime(true, 0.5);
    const exporter = exporterTo(server.url, { batchRuns: 10, lingerMs: 1_000_000, ageMs: 5_000 }, {}, time);
    for (const id of poison) {
      recordSingles(exporter, 4);
      const run = makeRun({ id });
      exporter.start(run);
      exporter.end(ended(run));
      recordSingles(exporter, 5);
    }
    await server.arrived(4);
    // Those that come later find their way, while the five are still tried.
    recordSingles(exporter, 40);
    await until(() => exporter.stats().sent === 85);
    expect(exporter.stats()).toMatchObject({ created: 90, inFlight: 5, dropped: 0 });
    expect(addsUp(exporter.stats())).toBe(true);
    await until(isSettled(exporter));

    expect(exporter.stats()).toMatchObject({ sent: 85, dropped: 5, droppedByReason: { expired: 5 } });
    expect(new Set(posted(server.received).filter((id) => !poison.has(id))).size).toBe(85);
    await exporter.close();
  });

  it('or for all is given up on at the end of the exporter, and counted once [fault 21]', async () => {
    told();
    await using server = await ingestServer(() => ({ status: 500 }));
    const time = virtualTime(false, 1);
    const exporter = exporterTo(server.url, { batchRuns: 3, requestsInFlight: 1 }, {}, time);
    recordSingles(exporter, 9);
    for (let requests = 1; requests <= 6; requests++) {
      await server.arrived(requests);
      await until(() => time.sleepers > 0);
      time.advance(20);
    }
    expect(await exporter.close({ timeoutMs: 0 })).toEqual({ ok: false, pending: 9 });

    expect(exporter.stats()).toMatchObject({ created: 9, dropped: 9, droppedByReason: { closed: 9 } });
    expect(addsUp(exporter.stats())).toBe(true);
  });
});

describe('a service that has taken runs and says that it failed', () => {
  it('gets the same records again, under the same ids [fault 37]', async () => {
    told();
    await using server = await ingestServer((_, index) => ({ status: index === 0 ? 500 : 202 }));
    const exporter = exporterTo(server.url, {}, {}, virtualTime(true));
    const ids = record(exporter, 3);
    await exporter.close();
    const [first, second] = server.received.map((request) => readJsonParts(request));

    expect(second).toEqual(first);
    expect(posted(server.received).sort()).toEqual([...ids, ...ids].sort());
    expect(exporter.stats()).toMatchObject({ sent: 6 });
  });

  it('gets the same patch again, with the whole end of the run [fault 38]', async () => {
    told();
    const run = makeRun({ inputs: '{"q":1}' });
    const patches: ReturnType<typeof readJsonParts>[] = [];
    await using server = await ingestServer((request) => {
      const parts = readJsonParts(request);
      if (!parts.has(`patch.${run.id}`)) return { status: 202 };
      return patches.push(parts) === 1 ? 'hold' : { status: 202 };
    });
    const exporter = exporterTo(server.url, { requestTimeoutMs: 100 }, {}, virtualTime(true));
    exporter.start(run);
    await exporter.flush();
    exporter.end(ended(run, { outputs: '{"a":1}', error: 'late' }));
    await exporter.close();
    const [first, second] = patches;

    expect(second).toEqual(first);
    expect(first?.get(`patch.${run.id}`)).toMatchObject({
      id: run.id,
      trace_id: run.id,
      dotted_order: run.dottedOrder,
      end_time: run.endTime,
      error: 'late',
    });
    expect(first?.get(`patch.${run.id}.outputs`)).toEqual({ a: 1 });
  });
});

describe('a clock that jumps', () => {
  it.each([-86_400_000, 86_400_000])('by %i ms changes no pause and no order [fault 39]', async (jumpMs) => {
    told();
    await using server = await ingestServer((_, index) =>
      index === 0 ? { status: 429, headers: { 'retry-after': '60' } } : { status: 202 },
    );
    const time = virtualTime();
    const exporter = exporterTo(server.url, {}, {}, time);
    recordSingles(exporter, 1);
    await until(() => time.sleepers === 1);
    const { now } = Date;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + jumpMs);
    onTestFinished(() => void vi.restoreAllMocks());
    time.advance(59_999);
    await turns();
    expect(server.received).toHaveLength(1);
    time.advance(1);
    await until(isSettled(exporter));

    expect(exporter.stats()).toMatchObject({ sent: 1, dropped: 0 });
    await exporter.close();
  });
});

describe('a service without multipart ingestion', () => {
  it('that fails at any one request gets only what it has not accepted again [fault 114]', async () => {
    told();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 9 }), async (failing) => {
        let singles = 0;
        await using server = await ingestServer(({ path }) => {
          if (path.endsWith('/multipart')) return { status: 404 };
          return { status: singles++ === failing ? 503 : 202 };
        });
        const exporter = exporterTo(server.url, { lingerMs: 1_000_000, simpleInFlight: 1 }, {}, virtualTime(true));
        recordSingles(exporter, 5);
        await exporter.close();
        const calls = server.received.slice(1).map(({ method, body }) => `${method} ${JSON.parse(`${body}`).id}`);

        expect(exporter.stats()).toMatchObject({ sent: 5, dropped: 0, requests: { multipart: 1, simple: 11 } });
        // One call twice, and every other once.
        expect(new Set(calls).size).toBe(10);
        expect(calls.filter((call) => call === calls[failing])).toHaveLength(2);
      }),
      { numRuns: 10 },
    );
  });

  it('after batches that it took gets only the one that it refused again [fault 114]', async () => {
    told();
    await using server = await ingestServer(({ path }, index) => ({
      status: path.endsWith('/multipart') && index === 2 ? 404 : 202,
    }));
    const exporter = exporterTo(
      server.url,
      { batchRuns: 2, requestsInFlight: 1, lingerMs: 1_000_000 },
      {},
      virtualTime(true),
    );
    const ids = recordSingles(exporter, 8);
    await exporter.close();
    const single = server.received.filter(({ path }) => path === '/runs').map(({ body }) => JSON.parse(`${body}`).id);

    expect(posted(server.received.slice(0, 2))).toEqual(ids.slice(0, 4));
    expect(single).toEqual(ids.slice(4));
    expect(exporter.stats()).toMatchObject({ sent: 8, requests: { multipart: 3, simple: 8 } });
  });

  it('that then fails is not asked for each run of a batch at each attempt [fault 115]', async () => {
    told();
    let isDown = true;
    await using server = await ingestServer(({ path }) => ({
      status: path.endsWith('/multipart') ? 404 : isDown ? 503 : 202,
    }));
    const time = virtualTime(false, 1);
    const exporter = exporterTo(server.url, { lingerMs: 1_000_000, simpleRequestsPerSecond: 1_000_000 }, {}, time);
    recordSingles(exporter, 100);
    await server.arrived(1);
    for (let attempt = 0; attempt < 5; attempt++) {
      await until(() => time.sleepers > 0);
      time.advance(20);
    }
    // Of 500 and more, one for each run at each attempt.
    expect(server.received.length).toBeLessThan(60);
    isDown = false;
    const closed = exporter.close();
    while (!isSettled(exporter)()) {
      time.advance(20);
      await turns(1);
    }
    await closed;
    expect(exporter.stats()).toMatchObject({ sent: 100, dropped: 0 });
  });
});
