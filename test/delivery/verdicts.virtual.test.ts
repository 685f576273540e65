// A run that the service refuses does not stop the others.
import '../support/virtual-timers.ts';

import { describe, expect, it } from 'vitest';
import { delay } from '#src/platform/timers.ts';
import { advance, delivery, until } from '../support/delivery.ts';
import type { Verdict } from '../support/scripted-service.ts';
import { virtualClock } from '../support/virtual-timers.ts';

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

const shortProgram = async (verdict: Verdict, isBad: (name: string) => boolean) => {
  const scene = await delivery({
    limits: { lingerMs: 1_000_000 },
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
