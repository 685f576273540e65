import { describe, expect, it } from 'vitest';
import { DropNotice } from '../../src/export/drop-notice.ts';
import { makeRun } from '../support/encoded-run.ts';
import { published } from '../support/published.ts';
import { told } from '../support/told.ts';
import { turns } from '../support/virtual-time.ts';

describe('DropNotice', () => {
  it('tells the first drop, with the reason and what helps, when the code at hand has finished', async () => {
    const lines = told();
    new DropNotice(undefined, () => 0).add('queue_full', makeRun());
    await turns();

    expect(lines).toEqual([
      'warn: 1 run was dropped (queue_full): the queue was full; raise limits.queueRuns or limits.queueBytes',
    ]);
  });

  it('tells those that come together in one line', async () => {
    const lines = told();
    const notice = new DropNotice(undefined, () => 0);
    for (let n = 0; n < 500; n++) notice.add('rejected', makeRun());
    await turns();

    expect(lines).toEqual(['warn: 500 runs were dropped (rejected): refused by the service']);
  });

  it.each([
    [59_999, []],
    [60_000, ['warn: 2 runs were dropped (rejected): refused by the service']],
    [60_001, ['warn: 2 runs were dropped (rejected): refused by the service']],
  ])('has, of one more just after the first line and one %i ms after it, told %j', async (laterMs, expected) => {
    const lines = told();
    let nowMs = 0;
    const notice = new DropNotice(undefined, () => nowMs);
    notice.add('rejected', makeRun());
    await turns();
    notice.add('rejected', makeRun());
    await turns();
    nowMs = laterMs;
    notice.add('rejected', makeRun());
    await turns();

    expect(lines.slice(1)).toEqual(expected);
  });

  it('tells at the end what has not been told, once', () => {
    const lines = told();
    const notice = new DropNotice(undefined, () => 0);
    notice.add('expired', makeRun());
    notice.add('closed', makeRun());
    notice.report();
    notice.report();

    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/^warn: 1 run was dropped \(closed\)/);
  });

  it('says what led to the last one', async () => {
    const lines = told();
    const dropped: unknown[] = [];
    const run = makeRun();
    new DropNotice(
      (_, one) => dropped.push(one),
      () => 0,
    ).add('rejected', run, 'status 422');
    await turns();

    expect(lines).toEqual(['warn: 1 run was dropped (rejected): refused by the service (last: status 422)']);
    expect(dropped).toEqual([{ id: run.id, traceId: run.traceId, name: run.name, detail: 'status 422' }]);
  });

  it('is not hurt by a callback that answers with a rejection', async () => {
    told();
    const rejecting = (async () => {
      throw new Error('mine');
    }) as unknown as () => void;
    new DropNotice(rejecting, () => 0).add('rejected', makeRun());

    await new Promise((resolve) => setImmediate(resolve));
  });

  it('names no run and no payload', async () => {
    const lines = told();
    new DropNotice(undefined, () => 0).add('rejected', makeRun({ name: 'sk-secret', inputs: '"sk-secret"' }));
    await turns();

    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('secret');
  });

  it('publishes each drop on its channel, with the service that did not get it', () => {
    told();
    const messages = published('runspan:run:dropped');
    const [first, second] = [makeRun({ name: 'a', inputs: '"canary"' }), makeRun({ name: 'b' })];
    const notice = new DropNotice(undefined, () => 0, 'https://traces.example');
    notice.add('rejected', first, 'status 400');
    notice.add('queue_full', second);
    notice.report();

    expect(messages).toEqual([
      {
        endpoint: 'https://traces.example',
        reason: 'rejected',
        run: { id: first.id, traceId: first.traceId, name: 'a', detail: 'status 400' },
      },
      {
        endpoint: 'https://traces.example',
        reason: 'queue_full',
        run: { id: second.id, traceId: second.traceId, name: 'b' },
      },
    ]);
  });
});
