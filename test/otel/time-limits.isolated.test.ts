import { describe, expect, test, vi } from 'vitest';
import type { RunSink } from '#src/run/sink.ts';

// Must run before the library loads the clock of the process.
const clock = vi.hoisted(() => {
  const time = { passedMs: 0 };
  const now = performance.now.bind(performance);
  performance.now = () => now() + time.passedMs;
  return time;
});

const { RunSpanProcessor } = await import('#src/otel.ts');
const { notingSink } = await import('./set-up.ts');

/** The time after which a tracer provider gives up on a processor. */
const EXPORT_TIMEOUT_MS = 30_000;

/** Creates a sink whose service hangs until a given time, so that each flush uses its full timeout. */
function hangingSink(untilMs = Number.POSITIVE_INFINITY): { sink: RunSink; waits: number[] } {
  const waits: number[] = [];
  const startMs = clock.passedMs;
  const { sink } = notingSink();
  const flush: RunSink['flush'] = async ({ timeoutMs = 0 } = {}) => {
    const isHanging = clock.passedMs - startMs < untilMs;
    waits.push(timeoutMs);
    if (isHanging) clock.passedMs += timeoutMs;
    return { ok: !isHanging, pending: isHanging ? 1 : 0 };
  };
  return { sink: { ...sink, flush }, waits };
}

const sum = (waits: readonly number[]): number => waits.reduce((total, ms) => total + ms, 0);

describe('a processor', () => {
  const create = (exporter: RunSink) => new RunSpanProcessor({ exporter, shouldExport: 'all' });

  test('waits 29 s in forceFlush and shutdown together if the collector hangs', async () => {
    const { sink, waits } = hangingSink();
    const tested = create(sink);
    await expect(tested.forceFlush()).rejects.toThrow('1 are pending');
    await tested.shutdown();
    expect([waits[0], sum(waits)]).toEqual([29_000, 29_000]);
  });

  test.each([
    ['succeeded', 0, 0],
    ['failed long ago', Number.POSITIVE_INFINITY, EXPORT_TIMEOUT_MS],
  ])('waits 29 s in shutdown if the last flush %s', async (_, untilMs, passedMs) => {
    const { sink, waits } = hangingSink(untilMs);
    const tested = create(sink);
    await tested.forceFlush().catch(() => {});
    clock.passedMs += passedMs;
    await tested.shutdown();
    expect(waits).toEqual([29_000, 29_000]);
  });

  test('waits 29 s in shutdown, some time after a flush that has failed at once', async () => {
    const { sink, waits } = hangingSink(0);
    const tested = create({ ...sink, flush: async (limit) => ({ ...(await sink.flush(limit)), ok: false }) });
    await expect(tested.forceFlush()).rejects.toThrow('not delivered');
    clock.passedMs += EXPORT_TIMEOUT_MS;
    await tested.shutdown();
    expect(waits).toEqual([29_000, 29_000]);
  });
});

test('the processor of runspan/register waits for its own timeout', async () => {
  const { sink, waits } = hangingSink();
  const processor = Object.assign(new RunSpanProcessor({ exporter: sink, shouldExport: 'all' }), {
    flushTimeoutMs: 3_000,
  });
  await processor.forceFlush().catch(() => {});
  await processor.shutdown();
  expect([waits[0], sum(waits)]).toEqual([3_000, 3_000]);
});
