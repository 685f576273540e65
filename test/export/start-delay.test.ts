import '../support/virtual-timers.ts';

import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { resolveSettings } from '../../src/export/settings.ts';
import { advance, delivery, finished, settle } from '../support/delivery.ts';

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

  it.each([
    [undefined, undefined, 2_000],
    ['250', undefined, 250],
    ['0', undefined, 0],
    ['250', 5, 5],
    ['soon', undefined, 2_000],
    ['-1', undefined, 2_000],
  ])('is read from RUNSPAN_START_DELAY_MS=%s unless the option is set: %s, result %i', (variable, option, ms) => {
    vi.stubEnv('RUNSPAN_START_DELAY_MS', variable);
    onTestFinished(() => void vi.unstubAllEnvs());
    const limits = option === undefined ? {} : { startDelayMs: option };
    const settings = resolveSettings({ endpoint: 'http://127.0.0.1:9', limits, log: 'silent' });

    expect(settings?.limits.startDelayMs).toBe(ms);
  });
});

describe('ready', () => {
  it('resolves once the queue is less than three quarters full', async () => {
    let isUp = false;
    const { exporter, wholes, stats } = await delivery({
      limits: { queueRuns: 8, batchRuns: 1, requestsInFlight: 1 },
      reply: () => (isUp ? 202 : 503),
    });
    wholes(8);
    let sent: number | undefined;
    const ready = exporter.ready().then(() => {
      sent = stats().sent;
    });
    await advance(1_000);
    expect(sent).toBeUndefined();
    isUp = true;
    await finished(ready);

    expect(sent).toBe(3);
  });

  it('lets a job that awaits it record more runs than the queue holds', async () => {
    const { exporter, whole, flush, stats } = await delivery({ limits: { queueRuns: 8, batchRuns: 2 } });
    const job = async (): Promise<void> => {
      for (let run = 0; run < 50; run++) {
        await exporter.ready();
        whole();
      }
    };
    await finished(job());
    await flush();

    expect(stats()).toMatchObject({ created: 50, sent: 50, dropped: 0 });
  });

  it('resolves when the exporter closes', async () => {
    const { exporter, wholes, close } = await delivery({ limits: { queueRuns: 4 }, reply: () => 503 });
    wholes(4);
    const ready = exporter.ready();
    await close({ timeoutMs: 0 });
    await ready;
    await exporter.ready();
  });
});
