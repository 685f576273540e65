// When runs are sent, and which runs share a batch.
import '../support/virtual-timers.ts';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { forAllAsync } from '../support/campaign.ts';
import { advance, delivery, onFlush, settle } from '../support/delivery.ts';
import { gate } from '../support/gate.ts';

const KIB = 1024;

describe('a run', () => {
  it('sends inputs that change after its post in its patch', async () => {
    const { start, flush, service } = await delivery();
    const run = start('ask', { inputs: { q: 1 } });
    await flush();
    run.set({ inputs: { q: 2 } });
    run.end();
    await flush();

    expect(service.arrivals('ask').map(({ fields }) => fields.inputs)).toEqual([{ q: 1 }, { q: 2 }]);
  });

  it('is dropped once if its post is rejected, whether its patch waits or comes later', async () => {
    const verdict = gate<number>();
    const isBad = (name: string): boolean => name.endsWith('held') || name.endsWith('open');
    const { start, flush, others, exporter, service, drops, stats } = await delivery({
      reply: ({ names }) => (names.some(isBad) ? verdict : 202),
    });
    const [held, open] = [start('held'), start('open')];
    void exporter.flush();
    await settle();
    held.end();
    verdict.open(418);
    open.end();
    await others();

    expect(await flush()).toEqual({ ok: true, pending: 0 });
    expect(service.batches.flat().filter((name) => name.startsWith('end'))).toEqual([]);
    expect(drops.sort()).toEqual(['rejected held', 'rejected open']);
    expect(stats()).toMatchObject({ created: 5, open: 0, dropped: 2, droppedByReason: { rejected: 2 } });
  });
});

describe('a batch', () => {
  it('is sent 250 ms after its first run has ended, even if other runs follow', async () => {
    const { whole, service } = await delivery();
    whole('first');
    await advance(200);
    whole('second');
    await advance(49);
    expect(service.batches).toEqual([]);
    await advance(1);

    expect(service.batches).toEqual([['whole first', 'whole second']]);
  });

  it.each([
    [2, 0],
    [3, 1],
    [4, 1],
  ])('of 3 runs is sent at once when it is full: %i ended runs, %i batches', async (count, batches) => {
    const { wholes, service } = await delivery({ limits: { batchRuns: 3 } });
    wholes(count);
    await settle();

    expect(service.requests).toHaveLength(batches);
  });

  it('is sent at once when it reaches `batchBytes`, and not one byte earlier', async () => {
    const sizes = await delivery({ limits: onFlush });
    for (let count = 0; count < 2; count++) sizes.whole('r', { inputs: { text: 'x'.repeat(5_000) } });
    await sizes.flush();
    const bytes = sizes.service.requests[0]?.body.length as number;
    for (const [batchBytes, sent] of [
      [bytes + 1, 0],
      [bytes, 1],
      [bytes - 1, 1],
    ] as const) {
      const { whole, service } = await delivery({ limits: { batchBytes } });
      for (let count = 0; count < 2; count++) whole('r', { inputs: { text: 'x'.repeat(5_000) } });
      await settle();
      expect(service.requests).toHaveLength(sent);
    }
  });

  it('has at most a quarter of `queueBytes` for all requests in flight, so that a burst of large runs does not fill the queue', async () => {
    const { whole, flush, service, stats } = await delivery({
      limits: { ...onFlush, queueBytes: 2_048 * KIB, requestsInFlight: 4 },
    });
    for (let run = 0; run < 39; run++) whole('large', { inputs: { text: 'x'.repeat(32 * KIB) } });
    await flush();

    const sizes = service.requests.map(({ body }) => body.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(128 * KIB);
    expect(Math.min(...sizes)).toBeGreaterThan(64 * KIB);
    expect(stats()).toMatchObject({ sent: 39, dropped: 0 });
  });

  it('never exceeds its limits, except for a single larger run', async () => {
    await forAllAsync(
      100,
      [fc.array(fc.integer({ min: 0, max: 30_000 }), { minLength: 1, maxLength: 25 }), fc.integer({ min: 1, max: 8 })],
      async (sizes, batchRuns) => {
        const { whole, flush, service, stats } = await delivery({ limits: { batchRuns, batchBytes: 20_000 } });
        sizes.forEach((size, at) => void whole(String(at), { inputs: { text: 'x'.repeat(size) } }));
        await flush();

        for (const { body, arrivals } of service.requests) {
          expect(arrivals.length).toBeLessThanOrEqual(batchRuns);
          if (arrivals.length > 1) expect(body.length).toBeLessThanOrEqual(20_000);
        }
        expect(stats().sent).toBe(sizes.length);
      },
    );
  });

  it('counts attachments that are added after the start of a run with its end', async () => {
    const { start, flush, service } = await delivery({ limits: { ...onFlush, batchBytes: 10_000 } });
    const runs = ['a', 'b'].map((name) => start(name));
    await flush();
    for (const run of runs) run.attach('image', Buffer.alloc(6_000), 'image/png');
    for (const run of runs) run.end();
    await flush();

    expect(service.batches).toEqual([['start a', 'start b'], ['end a'], ['end b']]);
  });

  it('waits while `requestsInFlight` requests are in flight', async () => {
    const held = gate<number>();
    const { wholes, service, flush } = await delivery({
      limits: { batchRuns: 1, requestsInFlight: 2 },
      reply: (_, index) => (index < 2 ? held : 202),
    });
    wholes(5);
    await settle();
    expect(service.requests).toHaveLength(2);
    held.open(202);
    await flush();

    expect(service.batches.flat()).toHaveLength(5);
  });
});

describe('startDelayMs', () => {
  it.each([
    [1_999, []],
    [2_000, [['start r']]],
  ])('delays the start of an open run by 2 s: after %i ms, %j is sent', async (ms, batches) => {
    const { start, service } = await delivery({ limits: { startDelayMs: 2_000 } });
    start('r');
    await advance(ms);

    expect(service.batches).toEqual(batches);
  });

  it('sends starts that are almost due together with the first', async () => {
    const { start, service } = await delivery({ limits: { startDelayMs: 2_000, lingerMs: 250 } });
    for (const name of ['1', '2', '3']) {
      start(name);
      await advance(200);
    }
    await advance(2_000);

    expect(service.batches).toEqual([['start 1', 'start 2'], ['start 3']]);
  });

  it('does not send younger starts with ended runs', async () => {
    const { start, whole, service } = await delivery({ limits: { startDelayMs: 2_000 } });
    start('open');
    whole('ended');
    await advance(250);

    expect(service.batches).toEqual([['whole ended']]);
  });

  it('ends early when the queue holds a full batch', async () => {
    const { start, service } = await delivery({ limits: { startDelayMs: 1_000_000, batchBytes: 10_000 } });
    for (let run = 0; run < 12; run++) start(String(run));
    await settle();

    expect(service.batches.length).toBeGreaterThan(0);
  });
});
