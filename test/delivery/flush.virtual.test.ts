// Which runs `flush` and `close` wait for, and what happens to the others.
import '../support/virtual-timers.ts';

import { describe, expect, it } from 'vitest';
import { addsUp } from '../support/adds-up.ts';
import { advance, delivery, finished, onFlush, settle, until } from '../support/delivery.ts';
import { gate } from '../support/gate.ts';
import { virtualClock } from '../support/virtual-timers.ts';

const DONE = { ok: true, pending: 0 };

describe('flush', () => {
  it('resolves at once if there are no runs', async () => {
    const { flush, service } = await delivery();
    expect(await flush()).toEqual(DONE);
    expect(service.requests).toEqual([]);
    expect(virtualClock.nowMs).toBe(0);
  });

  it('sends the starts of open runs, and does not wait for their ends', async () => {
    const { start, flush, service, stats } = await delivery({ limits: onFlush });
    start('ask');
    expect(await flush()).toEqual(DONE);
    expect(service.batches).toEqual([['start ask']]);
    expect(stats()).toMatchObject({ open: 1 });
  });

  it('does not wait for runs recorded after the call', async () => {
    const first = gate<number>();
    const { whole, exporter, stats } = await delivery({
      limits: onFlush,
      reply: (_, at) => (at === 0 ? first : 'hold'),
    });
    whole('first');
    const flushed = exporter.flush();
    await settle();
    whole('second');
    first.open(202);
    expect(await finished(flushed)).toEqual(DONE);
    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
    expect(addsUp(stats())).toBe(true);
  });

  it('returns the number of undelivered runs at its timeout, and loses none', async () => {
    const answer = gate<number>();
    const { wholes, start, flush, stats } = await delivery({ reply: () => answer });
    wholes(2);
    start('open');
    expect(await flush({ timeoutMs: 700 })).toEqual({ ok: false, pending: 3 });
    expect(virtualClock.nowMs).toBe(700);
    answer.open(202);
    await flush();
    expect(stats()).toMatchObject({ sent: 2, open: 1, dropped: 0 });
  });

  it('waits for at most 30 seconds', async () => {
    const { whole, flush } = await delivery({ limits: { requestTimeoutMs: 100_000 }, reply: () => 'hold' });
    whole();
    expect(await flush()).toEqual({ ok: false, pending: 1 });
    expect(virtualClock.nowMs).toBe(30_000);
  });

  it.each([
    5_000,
    null,
    { timeoutMs: '5s' },
    { timeoutMs: Object.create(null) },
    { timeoutMs: -1 },
    { timeoutMs: Number.NaN },
    { timeoutMS: 5 },
  ])('ignores the invalid limit %j, and reports it once', async (limit) => {
    const { whole, flush, close, lines } = await delivery();
    whole();
    expect(await flush(limit as never)).toEqual(DONE);
    expect(await close(limit as never)).toEqual(DONE);
    expect(lines).toEqual([
      'warn: flush and shutdown: expected { timeoutMs } with a number from 0; anything else is ignored.',
    ]);
  });

  it('works as a function without `this`, like `close` and `stats`', async () => {
    const { whole, exporter } = await delivery();
    const { flush, close, stats } = exporter;
    whole();
    expect(await finished(flush())).toEqual(DONE);
    expect(await finished(close())).toEqual(DONE);
    expect(stats()).toMatchObject({ created: 1, sent: 1 });
  });

  it('returns early if the service requests a longer pause, before or during the flush', async () => {
    const answer = gate<void>();
    const { whole, exporter, flush, service, stats } = await delivery({
      reply: async () => {
        await answer;
        return { status: 429, headers: { 'retry-after': '100' } };
      },
    });
    whole();
    const during = exporter.flush({ timeoutMs: 50_000 });
    answer.open();
    expect(await finished(during)).toEqual({ ok: false, pending: 1 });
    expect(await flush({ timeoutMs: 50_000 })).toEqual({ ok: false, pending: 1 });
    expect(service.requests).toHaveLength(1);
    expect(virtualClock.nowMs).toBeLessThan(1_000);
    expect(stats()).toMatchObject({ dropped: 0 });
  });

  it('waits for the requests in flight before it returns early', async () => {
    const slow = gate<number>();
    const { wholes, exporter, service, stats } = await delivery({
      limits: { batchRuns: 100 },
      reply: (_, at) => (at === 0 ? slow : { status: 429, headers: { 'retry-after': '100' } }),
    });
    wholes(101);
    const closed = exporter.close({ timeoutMs: 50_000 });
    await until(() => service.requests.length === 2);
    await settle();
    slow.open(202);
    expect(await finished(closed)).toEqual({ ok: false, pending: 1 });
    expect(stats()).toMatchObject({ sent: 100, dropped: 1 });
  });

  it('sends one request for a hundred concurrent calls', async () => {
    const { whole, exporter, service } = await delivery();
    whole();
    const flushes = await finished(Promise.all(Array.from({ length: 100 }, () => exporter.flush())));
    expect(flushes.every(({ ok }) => ok)).toBe(true);
    expect(service.requests).toHaveLength(1);
  });
});

describe('close', () => {
  it('delivers all runs once for several calls, and concurrent and later flushes resolve', async () => {
    const { whole, exporter, service, stats } = await delivery({ limits: onFlush });
    whole();
    const [first, second, during] = [exporter.close(), exporter.close(), exporter.flush()];
    expect(await finished(Promise.all([first, second, during]))).toEqual([DONE, DONE, DONE]);
    expect(await finished(exporter.flush())).toEqual(DONE);
    expect(service.requests).toHaveLength(1);
    expect(stats()).toMatchObject({ sent: 1, dropped: 0 });
  });

  it('drops undelivered runs at its timeout: queued, in flight, held back and open', async () => {
    const { start, whole, close, exporter, drops, stats } = await delivery({ limits: onFlush, reply: () => 'hold' });
    const held = start('held');
    void exporter.flush();
    await settle();
    held.end();
    whole('waiting');
    start('open');

    expect(await close({ timeoutMs: 1 })).toEqual({ ok: false, pending: 3 });
    expect(drops.sort()).toEqual(['closed held', 'closed open', 'closed waiting']);
    expect(stats()).toMatchObject({ created: 3, dropped: 3, backlog: { bytes: 0, oldestMs: 0 } });
    expect(addsUp(stats())).toBe(true);
  });

  it('accepts ends of its runs until it has closed, and no new runs', async () => {
    const answer = gate<number>();
    const { start, whole, exporter, drops, stats } = await delivery({
      limits: { requestsInFlight: 1, batchRuns: 1 },
      reply: () => answer,
    });
    const open = start('open');
    whole('whole');
    await settle();
    const closing = exporter.close();
    open.end();
    whole('late');
    answer.open(202);
    await finished(closing);

    expect(drops).toContain('closed late');
    expect(stats().created).toBe(3);
    expect(stats().sent + stats().dropped).toBe(3);
    expect(addsUp(stats())).toBe(true);
  });

  it('leaves no timer, even if batches linger and requests hang', async () => {
    const { start, whole, close } = await delivery({ reply: () => 'hold' });
    whole('under way');
    await advance(300);
    start('open');
    whole('lingers');
    await close({ timeoutMs: 0 });
    expect(virtualClock.nextMs).toBeUndefined();
  });
});

it('a retired exporter closes once its runs have ended and are delivered, and accepts their children until then', async () => {
  const scene = await delivery();
  const { start, exporter, service, drops } = scene;
  const open = start('open');
  exporter.retire();
  await advance(3_000);
  expect(scene.isClosed).toBe(false);
  start('child', {}, open).end();
  open.end();
  await until(() => scene.isClosed);

  expect(service.batches.flat()).toEqual(['start open', 'whole child', 'end open']);
  start('late');
  expect(drops).toEqual(['closed late']);
});

it('a delivered run retains no payload, even if the application retains the run', async () => {
  const { start, flush, stats } = await delivery();
  const run = start('ask', { inputs: { text: 'x'.repeat(10_000) } });
  expect(stats().backlog.bytes).toBeGreaterThan(10_000);
  run.end({ text: 'y'.repeat(10_000) });
  await flush();

  expect(stats().backlog.bytes).toBe(0);
  expect(JSON.stringify(run)).not.toContain('xxx');
});
