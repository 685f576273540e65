// When runs are sent again, and when they expire.
import '../support/virtual-timers.ts';

import { describe, expect, it } from 'vitest';
import { cases } from '../support/campaign.ts';
import { advance, delivery, settle, until } from '../support/delivery.ts';
import { published } from '../support/published.ts';
import type { ScriptedService, Verdict } from '../support/scripted-service.ts';
import { virtualClock } from '../support/virtual-timers.ts';

/** One run per request, as soon as it has ended. */
const single = { batchRuns: 1, requestsInFlight: 1 };

const gaps = ({ requests }: ScriptedService): number[] =>
  requests.slice(1).map(({ atMs }, at) => atMs - (requests[at]?.atMs ?? 0));

const busy = (retryAfter: string): Verdict => ({
  status: 429,
  headers: { 'retry-after': retryAfter, date: 'Fri, 20 Nov 2026 09:00:00 GMT' },
});

describe('a service that fails', () => {
  it.each([
    [1, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]],
    [0.5, [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]],
  ])(
    'receives the runs again after 0.5 s, doubled up to 30 s, times a random number (%d)',
    async (random, expected) => {
      const { whole, service } = await delivery({ limits: single, reply: () => 429, time: { random: () => random } });
      whole();
      await until(() => service.requests.length > expected.length);

      expect(gaps(service).slice(0, expected.length)).toEqual(expected);
    },
  );

  it.each<[Verdict, number]>([
    [422, 3],
    [408, 8],
    [500, 8],
    [{ status: 503, headers: { 'retry-after': '1' } }, 8],
  ])(
    'for one run with %j receives the others, and the run until it has failed %i times beside them',
    async (verdict, times) => {
      const { whole, service, stats, drops } = await delivery({
        limits: { batchRuns: 1 },
        reply: ({ names }) => (names[0] === 'whole bad' ? verdict : 202),
      });
      whole('bad');
      await settle();
      for (let count = 0; count < 20; count++) {
        whole('good');
        await advance(1_200);
      }
      expect(service.arrivals('good')).toHaveLength(20);
      const names = service.batches.flat();
      expect(names.filter((name, at) => name === 'whole bad' && names[at + 1] !== 'whole bad')).toHaveLength(times);
      expect(drops).toEqual(['rejected bad']);
      expect(stats()).toMatchObject({ sent: 20, dropped: 1 });
    },
  );

  it('at random with 503 receives every run', async () => {
    let random = 1;
    const { whole, stats } = await delivery({
      reply: () => {
        // A generator of numbers below 2^31 (Lehmer).
        random = (random * 48_271) % 2_147_483_647;
        return random % 10 < 3 ? 503 : 202;
      },
    });
    const runs = cases(600);
    for (let count = 0; count < runs; count++) {
      whole();
      await advance(500);
    }
    await until(() => stats().sent === runs);
  });

  it('receives the runs at once in a flush, which ends a back-off', async () => {
    const { whole, flush, service } = await delivery({
      limits: { retryDelayMs: 1_000_000, retryDelayMaxMs: 1_000_000 },
      reply: (_, index) => (index < 3 ? 429 : 202),
    });
    whole();
    await until(() => service.requests.length === 1);
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(virtualClock.nowMs).toBeLessThan(5_000);
  });

  it.each([
    [429, 100, 12],
    [403, 1_000_000, 6],
  ])('with %i receives few requests from 40 flushes in 4 s, each for %i ms: at most %i', async (status, ms, most) => {
    const { whole, exporter, service } = await delivery({ limits: single, reply: () => status });
    whole();
    await settle();
    for (let count = 0; count < 40; count++) {
      void exporter.flush({ timeoutMs: ms });
      await advance(100);
    }
    expect(service.requests.length).toBeLessThanOrEqual(most);
  });
});

it('a batch that fails expires run by run, each with its next attempt', async () => {
  const { wholes, drops, stats } = await delivery({ limits: { ageMs: 20_000 }, reply: () => 500 });
  wholes(4);
  await until(() => stats().dropped === 4);
  expect(new Set(drops.map((drop) => drop.split(' ')[0]))).toEqual(new Set(['expired']));
  expect(virtualClock.nowMs).toBeGreaterThan(20_000);
  expect(virtualClock.nowMs).toBeLessThan(20_000 + 4 * 30_000);
});

describe('Retry-After', () => {
  it.each([
    ['0', 1_000],
    ['7', 7_000],
    ['99999', 300_000],
    ['Fri, 20 Nov 2026 09:02:00 GMT', 120_000],
  ])('%s pauses the endpoint for %i ms plus a random tenth', async (after, ms) => {
    for (const random of [0, 0.5, 1]) {
      let isBusy = true;
      const { whole, service } = await delivery({
        limits: { ...single, requestsInFlight: 2 },
        time: { random: () => random },
        reply: () => (isBusy ? busy(after) : 202),
      });
      whole('first');
      await until(() => service.requests.length === 1);
      isBusy = false;
      whole('second');
      await until(() => service.requests.length === 3);

      expect(gaps(service)).toEqual([Math.round(ms * (1 + random / 10)), 0]);
    }
  });

  it('does not count towards the age of a run', async () => {
    let requests = 0;
    const { whole, flush, stats } = await delivery({
      limits: { ...single, ageMs: 10_000 },
      reply: () => (++requests <= 3 ? busy('60') : 202),
    });
    whole();
    await until(() => requests === 4);
    await flush();
    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  });

  it('holds by the clock, even if timers fire early or hours late', async () => {
    let skewMs = 0;
    let isBusy = true;
    const { wholes, service } = await delivery({
      limits: { ...single, requestsInFlight: 2 },
      time: { random: () => 0, monotonicMs: () => virtualClock.nowMs + skewMs },
      reply: () => (isBusy ? busy('120') : 202),
    });
    wholes(1);
    await until(() => service.requests.length === 1);
    isBusy = false;
    skewMs = -1_000;
    await advance(120_500);
    expect(service.requests).toHaveLength(1);
    skewMs = 7_200_000;
    wholes(5);
    await advance(2_000);
    expect(service.requests).toHaveLength(7);
  });
});

describe('a run', () => {
  it('expires after `ageMs`, and not earlier', async () => {
    const { whole, drops, lines } = await delivery({
      limits: { ...single, ageMs: 60_000, retryDelayMaxMs: 1_000 },
      reply: () => 429,
    });
    whole('old');
    await advance(59_999);
    expect(drops).toEqual([]);
    await advance(2_000);

    expect(drops).toEqual(['expired old']);
    expect(lines.at(-1)).toContain('expired');
  });

  it('that was open for long counts the age of its patch from its end', async () => {
    let status = 202;
    const { start, flush, stats } = await delivery({ limits: { ...single, ageMs: 10_000 }, reply: () => status });
    const run = start('long');
    await flush();
    await advance(100_000);
    run.end();
    status = 429;
    await advance(5_000);
    status = 202;
    await flush();

    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  });
});

describe('an outage', () => {
  it('is logged at its start and end, at most once a minute', async () => {
    const script = [503, 503, 202, 503, 202];
    for (const [laterMs, count] of [
      [59_000, 2],
      [61_000, 4],
    ] as const) {
      const { whole, lines, service } = await delivery({ limits: single, reply: (_, at) => script[at] ?? 202 });
      whole();
      await until(() => service.requests.length === 3);
      await settle();
      expect(lines).toEqual([
        `warn: delivery to ${service.url} failed: status 503; the runs are retried while the process runs`,
        `warn: delivery to ${service.url} works again`,
      ]);
      await advance(laterMs - virtualClock.nowMs);
      whole();
      await until(() => service.requests.length === 5);
      await settle();
      expect(lines).toHaveLength(count);
      virtualClock.reset();
    }
  });

  it('is published once on its channel, like the recovery with its duration', async () => {
    const [outages, recoveries] = [published('runspan:delivery:outage'), published('runspan:delivery:recovery')];
    const script: Verdict[] = [429, 429, 202, 500, 401, 202];
    const { whole, service } = await delivery({ limits: single, reply: (_, at) => script[at] ?? 202 });
    const endpoint = service.url;
    for (const requests of [3, 6]) {
      whole();
      await until(() => service.requests.length >= requests);
      await settle();
    }

    expect(outages).toEqual([
      { endpoint, error: 'status 429' },
      { endpoint, error: 'status 500' },
    ]);
    expect(recoveries).toEqual([
      { endpoint, durationMs: 1_500 },
      { endpoint, durationMs: 5_500 },
    ]);
  });
});
