// Runs a complete exporter in virtual time against services that refuse valid requests.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Exporter } from '../../src/export/exporter.ts';
import { addsUp } from '../support/adds-up.ts';
import { exporterTo, recordSingles } from '../support/delivering.ts';
import { ingestServer, type Received } from '../support/ingest-server.ts';
import { readJsonParts } from '../support/multipart-reader.ts';
import { acceptOne, type Connection, scriptServer } from '../support/script-server.ts';
import { turns, until, virtualTime } from '../support/virtual-time.ts';

/** Returns the ids of the posts in a multipart request. */
const postedIn = (request: Received): string[] =>
  [...readJsonParts(request).keys()].filter((name) => /^post\.[^.]+$/.test(name)).map((name) => name.slice(5));

const isSettled = (exporter: Exporter) => (): boolean => {
  const { created, sent, dropped } = exporter.stats();
  return created === sent + dropped;
};

/** Options that send all recorded runs in one batch, on a flush. */
const oneBatch = { lingerMs: 1_000_000, requestsInFlight: 1 };

describe('a service that answers once', () => {
  it.each([300, 302, 401, 402, 403, 407, 408, 421, 423, 425, 429, 451, 499, 500, 505, 506, 508, 510, 511, 529, 599])(
    'with status %i receives the same runs again [fault 19]',
    async (status) => {
      await using server = await ingestServer((_, index) => ({ status: index === 0 ? status : 202 }));
      const exporter = exporterTo(server.url, oneBatch, {}, virtualTime(true));
      recordSingles(exporter, 3);

      expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
      expect(exporter.stats()).toMatchObject({ sent: 3, dropped: 0 });
      await exporter.close();
    },
  );

  it.each([404, 405, 501])(
    'with status %i for multipart receives multipart batches again after one second [fault 6]',
    async (status) => {
      await using server = await ingestServer((_, index) => ({ status: index === 0 ? status : 202 }));
      const time = virtualTime(true);
      const exporter = exporterTo(server.url, oneBatch, {}, time);
      recordSingles(exporter, 1);
      await exporter.flush();
      time.advance(1_000);
      recordSingles(exporter, 50);
      await exporter.flush();

      expect(server.received.map(({ path }) => path.replace(/-.*/, ''))).toEqual([
        '/runs/multipart',
        '/runs',
        expect.stringMatching('^/runs/'),
        '/runs/multipart',
      ]);
      expect(exporter.stats()).toMatchObject({ sent: 51, dropped: 0 });
      await exporter.close();
    },
  );

  it('with 404 for a large batch receives the rest of it as a multipart batch one second later', async () => {
    await using server = await ingestServer((_, index) => ({ status: index === 0 ? 404 : 202 }));
    const exporter = exporterTo(server.url, oneBatch, {}, virtualTime(true));
    recordSingles(exporter, 100);
    await exporter.flush();

    const { sent, requests } = exporter.stats();
    expect(sent).toBe(100);
    expect(requests.multipart).toBe(2);
    // 50 requests per second, plus the requests in flight at its end.
    expect(requests.simple).toBeLessThanOrEqual(80);
    await exporter.close();
  });
});

describe('a service that answers 409 for a batch', () => {
  it('receives it in halves, so that a run it already has does not affect the others [fault 10]', async () => {
    const known = new Set<string>();
    const taken: string[] = [];
    await using server = await ingestServer((request) => {
      const ids = postedIn(request);
      if (ids.some((id) => known.has(id))) return { status: 409 };
      taken.push(...ids);
      return { status: 202 };
    });
    const exporter = exporterTo(server.url, oneBatch, {}, virtualTime(true));
    const [first, ...others] = recordSingles(exporter, 8) as [string, ...string[]];
    known.add(first);
    await exporter.flush();

    expect(taken.sort()).toEqual(others.sort());
    expect(exporter.stats()).toMatchObject({ sent: 8, dropped: 0 });
    await exporter.close();
  });
});

describe('a service that refuses everything', () => {
  it.each([400, 422])(
    'with %i is probed, not sent run by run, and receives the runs once it accepts requests',
    async (status) => {
      let isRefusing = true;
      await using server = await ingestServer(() => ({ status: isRefusing ? status : 202 }));
      const time = virtualTime();
      const exporter = exporterTo(server.url, { lingerMs: 1_000_000 }, {}, time);
      recordSingles(exporter, 1_000);
      await until(() => time.sleepers > 0 || isSettled(exporter)());
      await turns(100);
      for (const second of [1, 5, 30]) {
        time.advance(second * 1_000);
        await turns(200);
      }
      expect(server.received.length).toBeLessThan(400);
      expect(addsUp(exporter.stats())).toBe(true);
      isRefusing = false;
      await exporter.flush();

      const { sent, dropped } = exporter.stats();
      expect(sent).toBeGreaterThanOrEqual(900);
      expect(sent + dropped).toBe(1_000);
      await exporter.close();
    },
  );

  it('for some runs is not paused, and costs those runs alone', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }), { maxLength: 3 }),
        async (batches) => {
          const bad = new Set<string>();
          await using server = await ingestServer((request) => ({
            status: postedIn(request).some((id) => bad.has(id)) ? 400 : 202,
          }));
          const exporter = exporterTo(server.url, oneBatch, {}, virtualTime(true));
          for (const batch of batches) {
            // Each batch has a valid run, because a batch without one is attributed to the endpoint.
            const ids = recordSingles(exporter, batch.length + 1);
            for (const [at, isBad] of batch.entries()) if (isBad) bad.add(ids[at] as string);
            expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
          }
          expect(exporter.stats()).toMatchObject({ dropped: bad.size, droppedByReason: { rejected: bad.size } });
          await exporter.close();
        },
      ),
      { numRuns: 10 },
    );
  });
});

describe('a service that rejects the key', () => {
  it.each([
    [403, 302],
    [302, 403],
    [403, 202],
  ])('with %i and then responds with %i still receives the runs of a short program', async (first, second) => {
    await using server = await ingestServer((_, index) => ({ status: [first, second][index] ?? 202 }));
    const exporter = exporterTo(server.url, oneBatch, {}, virtualTime(true));
    recordSingles(exporter, 3);

    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    await exporter.close();
  });

  it('is probed after 1 s, 5 s, 30 s, and finally every 5 minutes', async () => {
    await using server = await ingestServer(() => ({ status: 403 }));
    const time = virtualTime(true);
    const exporter = exporterTo(server.url, { batchRuns: 1, requestsInFlight: 1 }, {}, time);
    recordSingles(exporter, 1);
    const atMs: number[] = [];
    for (let asked = 1; asked <= 9; asked++) {
      await server.arrived(asked);
      atMs.push(time.monotonicMs());
    }
    const gaps = atMs.slice(1).map((ms, at) => Math.round((ms - (atMs[at] as number)) / 1_000));

    expect(gaps.slice(0, 3)).toEqual([1, 5, 30]);
    expect(gaps.slice(-2)).toEqual([300, 300]);
    await exporter.close({ timeoutMs: 0 });
  });

  it.each(['flush', 'close'] as const)(
    'ends a %s with the second refused probe, a second after the first',
    async (method) => {
      await using server = await ingestServer(() => ({ status: 403 }));
      const time = virtualTime();
      const exporter = exporterTo(server.url, { batchRuns: 1, requestsInFlight: 1 }, {}, time);
      recordSingles(exporter, 1);
      for (const seconds of [1, 5, 30]) {
        await until(() => time.sleepers > 0);
        time.advance(seconds * 1_000);
      }
      await server.arrived(4);
      await until(() => time.sleepers > 0);
      const flushed = exporter[method]({ timeoutMs: 1_000_000 });
      await server.arrived(5);
      await until(() => time.sleepers > 0);
      time.advance(999);
      await turns();
      expect(server.received).toHaveLength(5);
      time.advance(1);

      expect(await flushed).toEqual({ ok: false, pending: 1 });
      expect(server.received).toHaveLength(6);
      await exporter.close({ timeoutMs: 0 });
    },
  );

  it('is probed once a second at most, however many flushes wait', async () => {
    await using server = await ingestServer(() => ({ status: 403 }));
    const time = virtualTime();
    const exporter = exporterTo(server.url, { batchRuns: 1, requestsInFlight: 1 }, {}, time);
    recordSingles(exporter, 1);
    await server.arrived(1);
    for (let count = 0; count < 20; count++) {
      void exporter.flush({ timeoutMs: 1_000_000 });
      await turns();
      time.advance(100);
      await turns();
    }
    // Two seconds.
    expect(server.received.length).toBeLessThanOrEqual(4);
    await exporter.close({ timeoutMs: 0 });
  });
});

describe('an answer of 202', () => {
  const head = 'HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{';

  it.each<[string, (connection: Connection) => void]>([
    ['breaks off', ({ socket }) => void socket.end(head)],
    ['is reset', ({ socket }) => void socket.write(head, () => setImmediate(() => socket.resetAndDestroy()))],
    ['never ends', ({ socket }) => void socket.write(head)],
  ])('whose body %s counts as delivered [fault 25]', async (_, answer) => {
    const server = await scriptServer(async (connection) => {
      await connection.request();
      answer(connection);
    }, acceptOne);
    const exporter = exporterTo(server.url, oneBatch);
    recordSingles(exporter, 2);

    expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
    expect(server.requests).toHaveLength(1);
    await exporter.close();
  });

  it('whose body lists errors still counts for the whole batch [fault 36]', async () => {
    const ids: string[] = [];
    await using server = await ingestServer(() => ({
      status: 207,
      body: JSON.stringify({ errors: [{ id: ids[0], status: 422 }] }),
    }));
    const exporter = exporterTo(server.url, oneBatch);
    ids.push(...recordSingles(exporter, 3));
    await exporter.flush();

    expect(exporter.stats()).toMatchObject({ sent: 3, dropped: 0, requests: { multipart: 1 } });
    await exporter.close();
  });
});

it('a response with status 099 is reported as invalid HTTP, and the runs are sent again [fault 31]', async () => {
  const lines: string[] = [];
  const server = await scriptServer(async (connection) => {
    await connection.request();
    connection.socket.end('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n');
  }, acceptOne);
  const log = (_: string, line: string): void => void lines.push(line);
  const exporter = exporterTo(server.url, oneBatch, { log });
  recordSingles(exporter, 1);

  expect(await exporter.flush()).toEqual({ ok: true, pending: 0 });
  expect(lines[0]).toContain('failed: the answer is no HTTP;');
  await exporter.close();
});
