// A run that the service refuses does not stop the others.
import '../support/virtual-timers.ts';

import { describe, expect, it } from 'vitest';
import { delay } from '#src/platform/timers.ts';
import { sample } from '../support/campaign.ts';
import { advance, delivery, type Setup, until } from '../support/delivery.ts';
import { machine } from '../support/processes.ts';
import type { Verdict } from '../support/scripted-service.ts';
import { virtualClock } from '../support/virtual-timers.ts';

const bad = (names: readonly string[]): boolean => names.includes('whole bad');

it.each<Verdict>(sample([302, 400, 401, 403, 406, 408, 422, 451, 500, 503, 'reset']))(
  'a run that is answered with %j stops no other run, in its batch and after it',
  async (verdict) => {
    const { whole, wholes, service, stats, drops } = await delivery({
      reply: ({ names }) => (bad(names) ? verdict : 202),
    });
    whole('bad');
    wholes(49);
    for (let round = 0; round < 40; round++) {
      await advance(500);
      wholes(20);
    }
    await advance(5_000);

    expect(drops).toEqual(['rejected bad']);
    expect(stats()).toMatchObject({ created: 850, sent: 849, dropped: 1 });
    expect(service.batches.flat().filter((name) => name === 'whole bad').length).toBeLessThan(30);
  },
);

it('a run that is answered with 503 and `Retry-After` delays the others, and is dropped', async () => {
  const busy = { status: 503, headers: { 'retry-after': '10' } };
  const { whole, stats, drops } = await delivery({ reply: ({ names }) => (bad(names) ? busy : 202) });
  whole('bad');
  for (let round = 0; round < 300; round++) {
    whole('good');
    await advance(1_000);
  }
  expect(drops).toEqual(['rejected bad']);
  expect(stats()).toMatchObject({ sent: 300, queued: 0, inFlight: 0 });
});

it('a batch that is too slow for a gateway is halved until it is fast enough', async () => {
  const { wholes, stats } = await delivery({ reply: ({ names }) => (names.length > 10 ? 408 : 202) });
  wholes(400);
  await advance(60_000);
  expect(stats()).toMatchObject({ sent: 400, queued: 0 });
});

it('an exporter that was replaced closes when its refused run has expired', async () => {
  const scene = await delivery({ limits: { ageMs: 60_000 }, reply: () => 422 });
  scene.whole('bad');
  await advance(1_000);
  scene.exporter.retire();
  await until(() => scene.isClosed);
  expect(scene.drops).toEqual(['expired bad']);
});

it('a run that is answered with 403 stops no other run across restarts with `spill`', async () => {
  const { start } = machine();
  const reply = ({ names }: { readonly names: readonly string[] }): Verdict => (bad(names) ? 403 : 202);
  const first = await start({ reply: () => 503 });
  first.whole('bad');
  first.wholes(30);
  first.exit();
  const second = await start({ reply });
  second.whole('first');
  await until(() => second.stats().sent === 31);
  second.exit();
  const third = await start({ reply });
  await third.others();
  await until(() => third.stats().dropped === 1);
  expect(third.stats()).toMatchObject({ recovered: 31, sent: 33, dropped: 1, queued: 0, spooled: 0 });
});

it('two malformed runs in a row in a quiet program stop no other run', async () => {
  const { whole, stats } = await delivery({ reply: ({ names }) => (bad(names) ? 422 : 202) });
  for (const name of ['good', 'bad', 'bad']) {
    whole(name);
    await advance(600);
  }
  for (let count = 0; count < 50; count++) {
    whole('good');
    await advance(800);
  }
  expect(stats()).toMatchObject({ sent: 51, dropped: 2, queued: 0 });
});

it('new runs are sent after an outage in which the last queued run expired', async () => {
  let verdict = 503;
  const { whole, wholes, stats } = await delivery({ limits: { ageMs: 1_500 }, reply: () => verdict });
  whole();
  await until(() => stats().dropped === 1);
  await advance(60_000);
  verdict = 202;
  wholes(5);
  await advance(31_000);
  expect(stats()).toMatchObject({ sent: 5, queued: 0 });
});

it.each(sample<number>([406, 410, 418, 431]))(
  'runs are kept if the service answers everything with %i',
  async (status) => {
    let verdict = status;
    const { wholes, stats } = await delivery({ reply: () => verdict });
    wholes(20);
    await advance(1_200_000);
    expect(stats()).toMatchObject({ queued: 0, inFlight: 20, dropped: 0 });
    verdict = 202;
    await advance(300_000);
    expect(stats()).toMatchObject({ sent: 20, dropped: 0 });
  },
);

/** A program of five runs that ends with `shutdown`. */
const shortProgram = async (verdict: Verdict, isBad: (name: string) => boolean, options: Setup = {}) => {
  const scene = await delivery({
    ...options,
    limits: { ...options.limits, lingerMs: 1_000_000 },
    reply: ({ names }) => (names.some(isBad) ? verdict : 202),
  });
  scene.wholes(5);
  const result = await scene.close();
  return { ...scene, result, atMs: virtualClock.nowMs };
};

const refusal = (status: number): Verdict => ({ status, body: '{"detail":"inputs: no poison please"}' });

describe('a short program of five runs, one of which the service refuses', () => {
  it.each([400, 413, 422])('with %i ends within two seconds, and tells the words of the service', async (status) => {
    const { result, atMs, drops, details, stats } = await shortProgram(refusal(status), (name) => name === 'whole 3');
    expect(result).toEqual({ ok: true, pending: 0 });
    expect(atMs).toBeLessThan(2_000);
    expect(drops).toEqual([status === 413 ? 'too_large 3' : 'rejected 3']);
    expect(details).toEqual([`status ${status}, "inputs: no poison please"`]);
    expect(stats()).toMatchObject({ sent: 4, dropped: 1 });
  });

  it.each([302, 401, 403, 406, 451])(
    'with %i, which may be the cause of the endpoint, keeps it until the time limit',
    async (status) => {
      const { result, atMs, drops, details } = await shortProgram(refusal(status), (name) => name === 'whole 3');
      expect(result).toEqual({ ok: false, pending: 1 });
      expect(atMs).toBe(30_000);
      expect(drops).toEqual(['closed 3']);
      expect(details[0]).toContain(`status ${status}, "inputs: no poison please"`);
    },
  );

  it('delivers the others if two are refused', async () => {
    const { drops, atMs, stats } = await shortProgram(refusal(422), (name) => name === 'whole 1' || name === 'whole 5');
    expect(drops.sort()).toEqual(['rejected 1', 'rejected 5']);
    expect(atMs).toBeLessThan(2_000);
    expect(stats()).toMatchObject({ sent: 3, dropped: 2 });
  });

  it('delivers the others if two are refused before the others are accepted', async () => {
    const { whole, flush, drops, stats } = await delivery({
      limits: { lingerMs: 1_000_000 },
      reply: async ({ names }) => {
        if (names.some((name) => name === 'whole 1' || name === 'whole 2')) return 422;
        await delay(20, undefined);
        return 202;
      },
    });
    for (const name of ['1', '2', '3', '4', '5']) whole(name);
    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(drops.sort()).toEqual(['rejected 1', 'rejected 2']);
    expect(stats()).toMatchObject({ sent: 3 });
  });

  it('drops none if the service refuses everything from its second response on', async () => {
    for (const end of ['flush', 'close'] as const) {
      const scene = await delivery({
        limits: { lingerMs: 1_000_000 },
        reply: (_, at) => (at === 1 ? 202 : { status: 400, body: '{"detail":"API key expired"}' }),
      });
      scene.wholes(100);
      expect(await scene[end]({ timeoutMs: 20_000 })).toEqual({ ok: false, pending: 50 });
      expect(scene.drops.filter((drop) => !drop.startsWith('closed'))).toEqual([]);
      expect(scene.lines[0]).toContain('failed: status 400, "API key expired"; the runs are retried');
      virtualClock.reset();
    }
  });

  it('drops none if all are refused, because the endpoint may be the cause', async () => {
    const { drops } = await shortProgram(refusal(422), () => true);
    expect(drops.every((drop) => drop.startsWith('closed'))).toBe(true);
  });
});
