import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Item } from '../../src/export/delivery.ts';
import type { DispatcherParts } from '../../src/export/dispatcher.ts';
import { Pace } from '../../src/export/pace.ts';
import { DeliveryQueue } from '../../src/export/queue.ts';
import { ServiceInfo } from '../../src/export/service-info.ts';
import type { Outcome } from '../../src/export/transport.ts';
import { makeDelivery } from '../support/encoded-run.ts';
import { HandTransport } from '../support/exporter.ts';
import { clientOf } from '../support/http-client.ts';
import { turns } from '../support/virtual-time.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A dispatcher of batches of three runs, or of 10 000 bytes, that linger for 250 ms. */
async function makeDispatcher(parts: Partial<DispatcherParts> & { requestsInFlight?: number } = {}) {
  // It takes its timers when it is loaded.
  vi.resetModules();
  const { Dispatcher } = await import('../../src/export/dispatcher.ts');
  const queue = new DeliveryQueue();
  const transport = new HandTransport();
  const info = new ServiceInfo(clientOf('http://127.0.0.1:9'), { runs: 3, bytes: 10_000 });
  info.ask = () => Promise.resolve();
  const settled: [Item, Outcome][] = [];
  const dispatcher = new Dispatcher({
    queue,
    transport,
    info,
    pace: new Pace(() => 0),
    limits: { lingerMs: 250, requestsInFlight: parts.requestsInFlight ?? 1 },
    taken: () => {},
    settle: (item, outcome) => settled.push([item, outcome]),
    finished: () => dispatcher.schedule(),
    ...parts,
  });
  const add = async (count: number, bytes = 1_024): Promise<void> => {
    for (let n = 0; n < count; n++) queue.addReady(makeDelivery({ bytes }));
    dispatcher.schedule();
    await turns();
  };
  const start = (): void => {
    queue.addStart(makeDelivery({ stage: 'started' }));
    dispatcher.schedule();
  };
  const sizes = (): number[] => transport.sendings.map(({ items }) => items.length);
  return { dispatcher, queue, transport, settled, add, start, sizes };
}

describe('a batch leaves', () => {
  it('when its first run has lingered, whatever came after it', async () => {
    const { add, sizes } = await makeDispatcher({ requestsInFlight: 2 });
    await add(1);
    vi.advanceTimersByTime(200);
    await add(1);
    vi.advanceTimersByTime(49);
    expect(sizes()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(sizes()).toEqual([2]);
    await add(1);
    vi.advanceTimersByTime(249);
    expect(sizes()).toEqual([2]);
    vi.advanceTimersByTime(1);
    expect(sizes()).toEqual([2, 1]);
  });

  it('with runs that have only started when these have lingered', async () => {
    const { start, transport } = await makeDispatcher();
    start();
    vi.advanceTimersByTime(250);
    expect(transport.sendings[0]?.items.map(({ isEnded }) => isEnded)).toEqual([false]);
  });

  it.each([
    [2, []],
    [3, [3]],
    [4, [3]],
    [6, [3, 3]],
  ])('at once when it is full: of %i runs %j', async (count, expected) => {
    const { add, sizes } = await makeDispatcher({ requestsInFlight: 2 });
    await add(count);
    expect(sizes()).toEqual(expected);
  });

  it.each([
    [9_999, []],
    [10_000, [1]],
    [10_001, [1]],
  ])('at once when it is full: of %i bytes %j', async (bytes, expected) => {
    const { add, sizes } = await makeDispatcher();
    await add(1, bytes);
    expect(sizes()).toEqual(expected);
  });

  it('only when there is a request to spare', async () => {
    const { dispatcher, add, sizes, transport } = await makeDispatcher({ requestsInFlight: 2 });
    await add(9);
    expect(sizes()).toEqual([3, 3]);
    dispatcher.hurry();
    expect(sizes()).toEqual([3, 3]);
    await transport.finish(0);
    expect(sizes()).toEqual([3, 3, 3]);
  });
});

describe('a hurry', () => {
  it('sends what waits at once, what has only started too', async () => {
    const { dispatcher, add, start, transport } = await makeDispatcher();
    start();
    await add(1);
    dispatcher.hurry();
    expect(transport.sendings[0]?.items.map(({ isEnded }) => isEnded)).toEqual([false, true]);
  });

  it('lasts until each of those who are in one is calm', async () => {
    const { dispatcher, add, sizes } = await makeDispatcher({ requestsInFlight: 10 });
    dispatcher.hurry();
    dispatcher.hurry();
    await add(1);
    dispatcher.calm();
    await add(1);
    expect(sizes()).toEqual([1, 1]);
    dispatcher.calm();
    await add(1);
    expect(sizes()).toEqual([1, 1]);
  });
});

describe('a stop', () => {
  it('gives up what is under way, sends nothing more, and leaves no timer behind', async () => {
    const { dispatcher, add, sizes, settled } = await makeDispatcher({ requestsInFlight: 2 });
    await add(4);
    expect(sizes()).toEqual([3]);
    await dispatcher.stop();
    const dropped = { kind: 'dropped', reason: 'closed', detail: '' };
    expect(settled.map(([, outcome]) => outcome)).toEqual([dropped, dropped, dropped]);
    await add(3);
    dispatcher.hurry();
    expect(sizes()).toEqual([3]);
  });

  it('comes before a batch that lingers', async () => {
    const { dispatcher, add, sizes } = await makeDispatcher();
    await add(1);
    await dispatcher.stop();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(60_000);
    expect(sizes()).toEqual([]);
  });
});

it('gives up a batch that could not be sent at all, and says so', async () => {
  const broken = {
    send(): never {
      throw new TypeError('no transport');
    },
  };
  const { add, settled } = await makeDispatcher({ transport: broken });
  // The diagnostics are those that were loaded with it.
  const { told } = await import('../support/told.ts');
  const lines = told();
  await add(3);
  expect(settled.map(([, outcome]) => outcome.kind)).toEqual(['dropped', 'dropped', 'dropped']);
  expect(lines).toEqual(['error: a batch could not be sent: no transport']);
});
