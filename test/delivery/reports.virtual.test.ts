// Reports of an exporter: drops, counts, latencies, errors, requests.
import '../support/virtual-timers.ts';

import { describe, expect, it, onTestFinished } from 'vitest';
import { publish, subscribe } from '#src/run/stats.ts';
import { addsUp } from '../support/adds-up.ts';
import { advance, delivery, onFlush, settle, until } from '../support/delivery.ts';
import { published } from '../support/published.ts';
import type { Verdict } from '../support/scripted-service.ts';
import { virtualClock } from '../support/virtual-timers.ts';

const QUEUE_FULL = 'dropped (queue_full): the queue was full; raise limits.queueRuns or limits.queueBytes';

describe('a drop', () => {
  it('is reported to `onDrop` and on its channel, with reason, ids and detail, even if the callback fails', async () => {
    const messages = published('runspan:run:dropped');
    for (const fails of [() => Promise.reject(new Error('mine')), () => Promise.reject(), () => undefined]) {
      const seen: [reason: string, run: object][] = [];
      messages.length = 0;
      const { whole, flush, others, service, stats } = await delivery({
        limits: { ...onFlush, queueRuns: 2 },
        reply: ({ names }) => (names.includes('whole first') ? 422 : 202),
        options: {
          onDrop: (reason, run) => {
            seen.push([reason, run]);
            if (seen.length === 1) throw new Error('mine');
            return fails() as never;
          },
        },
      });
      const [first, , third] = ['first', 'second', 'third'].map((name) => {
        const { id, traceId } = whole(name);
        return { id, traceId };
      });
      await flush();
      await others();

      expect(seen).toEqual([
        ['queue_full', { ...third, name: 'third' }],
        ['rejected', { ...first, name: 'first', detail: 'status 422' }],
      ]);
      expect(messages).toEqual(seen.map(([reason, run]) => ({ endpoint: service.url, reason, run })));
      expect(addsUp(stats())).toBe(true);
    }
  });

  it('is logged with others of the same turn, then once a minute and at the end', async () => {
    const { whole, close, lines } = await delivery({ limits: { ...onFlush, queueRuns: 1 } });
    for (let count = 0; count < 501; count++) whole();
    await settle();
    expect(lines).toEqual([`warn: 500 runs were ${QUEUE_FULL}`]);
    whole();
    await advance(59_999);
    whole();
    await settle();
    expect(lines).toHaveLength(1);
    await advance(1);
    whole();
    await settle();
    expect(lines.slice(1)).toEqual([`warn: 3 runs were ${QUEUE_FULL}`]);
    whole();
    await close();
    expect(lines.slice(2)).toEqual([`warn: 1 run was ${QUEUE_FULL}`]);
  });

  it('is logged with the last cause, and without name or payload', async () => {
    const { whole, others, lines } = await delivery({ reply: ({ names }) => (names[0] === 'whole good' ? 202 : 422) });
    whole('canary-name', { inputs: { canary: 1 } }, { canary: 1 });
    await others();
    await settle();

    expect(lines).toContain('warn: 1 run was dropped (rejected): rejected by the service (last: status 422)');
    expect(lines.join()).not.toContain('canary');
  });
});

describe('stats', () => {
  it('contain the age of the oldest record, including retries and pauses', async () => {
    let verdict: Verdict = { status: 429, headers: { 'retry-after': '200' } };
    const { start, whole, flush, stats } = await delivery({ limits: { batchRuns: 1 }, reply: () => verdict });
    expect(stats().backlog).toEqual({ bytes: 0, oldestMs: 0 });
    await advance(10);
    const open = start('open');
    await advance(90);
    expect(stats().backlog.oldestMs).toBe(90);
    open.end();
    await advance(0);
    whole();
    await advance(150_000);
    expect(stats().backlog.oldestMs).toBeGreaterThanOrEqual(150_000);
    verdict = 202;
    await flush({ timeoutMs: 1_000_000 });
    expect(stats().backlog).toEqual({ bytes: 0, oldestMs: 0 });
  });

  it('do not count the age of an open run without a queued record', async () => {
    const { start, flush, stats } = await delivery({ limits: onFlush });
    const run = start('open');
    await flush();
    await advance(60_000);
    expect(stats().backlog).toEqual({ bytes: 0, oldestMs: 0 });
    run.end();
    await advance(7);
    expect(stats().backlog.oldestMs).toBe(7);
  });

  it('contain the percentiles of the last 500 requests, by nearest rank', async () => {
    let tookMs = 0;
    let next = 0;
    // Without sockets, for the sake of six hundred requests.
    const dispatcher = {
      request: ({ path }: { path: string }) => {
        if (path.endsWith('multipart')) tookMs += next;
        return Promise.reject(new Error('away'));
      },
    } as never;
    const { whole, flush, stats } = await delivery({
      limits: { batchRuns: 1, requestsInFlight: 1, retryDelayMs: 1, retryDelayMaxMs: 1 },
      options: { dispatcher },
      time: { monotonicMs: () => virtualClock.nowMs + tookMs },
    });
    expect(stats().latency).toBeUndefined();
    whole();
    const requests = async (durations: readonly number[]): Promise<void> => {
      for (const ms of durations) {
        next = ms;
        const { multipart } = stats().requests;
        await until(() => stats().requests.multipart > multipart);
      }
    };
    await requests([7]);
    expect(stats().latency).toEqual({ p50Ms: 7, p99Ms: 7 });
    await requests([3, 1]);
    expect(stats().latency).toEqual({ p50Ms: 3, p99Ms: 7 });
    await requests(Array.from({ length: 97 }, (_, at) => at + 4));
    expect(stats().latency).toEqual({ p50Ms: 50, p99Ms: 99 });
    await requests(Array.from({ length: 500 }, () => 5));
    expect(stats().latency).toEqual({ p50Ms: 5, p99Ms: 5 });
    await flush({ timeoutMs: 0 });
  });

  it.each<[Verdict, string | undefined]>([
    [202, undefined],
    [401, 'status 401: the API key was rejected; if `apiKey` is a function, it can return a new one without a restart'],
    [413, 'status 413'],
    [503, 'status 503'],
  ])('after the response %j contain the last error %j', async (verdict, message) => {
    const { whole, flush, stats, service } = await delivery({ reply: () => verdict, options: { apiKey: 'k' } });
    whole();
    await flush({ timeoutMs: 10 });
    expect(stats().lastError?.message).toBe(message);
    if (message === undefined) return;
    expect(stats().lastError?.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    service.reply = () => 202;
    whole();
    await flush();
    expect(stats().lastError?.message).toBe(message);
  });

  it('contain no error of a request that `close` ends', async () => {
    const hanging = await delivery({ reply: () => 'hold' });
    hanging.whole();
    await hanging.close({ timeoutMs: 1 });
    expect(hanging.stats()).toMatchObject({ lastError: undefined, latency: undefined });
  });
});

it('each request is published on its channel, without payload', async () => {
  const messages = published('runspan:request:end');
  let tookMs = 0;
  // The next request has a new connection.
  const first = { status: 503, headers: { connection: 'close' } };
  const script: Verdict[] = [first, 'reset', 202, 202, 404, 202];
  const { wholes, whole, flush, service } = await delivery({
    limits: onFlush,
    time: { monotonicMs: () => virtualClock.nowMs + tookMs },
    reply: (_, at) => {
      tookMs += 8;
      return script[at] ?? 202;
    },
  });
  wholes(2);
  await flush();
  whole();
  await flush();
  const bytes = service.requests.map(({ body }) => body.length);
  const common = (at: number) => ({ endpoint: service.url, durationMs: 8, bytes: bytes[at] });

  expect(messages).toEqual([
    { ...common(0), kind: 'multipart', runs: 2, status: 503, error: 'status 503' },
    { ...common(1), kind: 'multipart', runs: 1, status: undefined, error: expect.stringContaining('ECONNRESET') },
    { ...common(2), kind: 'multipart', runs: 1, status: 202, error: undefined },
    { ...common(3), kind: 'multipart', runs: 1, status: 202, error: undefined },
    { ...common(4), kind: 'multipart', runs: 1, status: 404, error: 'status 404' },
    { ...common(5), kind: 'simple', runs: 1, status: 202, error: undefined },
    { ...common(6), kind: 'simple', runs: 1, status: 202, error: undefined },
  ]);
});

it('a subscriber of a channel receives no message that it causes itself', () => {
  const run = { id: '1', traceId: '1', name: 'a' };
  const drop = () => publish('runspan:run:dropped', () => ({ endpoint: 'http://127.0.0.1:9', reason: 'closed', run }));
  let received = 0;
  const listener = (): void => {
    received++;
    drop();
  };
  onTestFinished(subscribe('runspan:run:dropped', listener));
  drop();
  drop();

  expect(received).toBe(2);
});
