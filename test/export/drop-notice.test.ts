import { describe, expect, it } from 'vitest';
import { DropNotice } from '../../src/export/drop-notice.ts';
import { makeRun } from '../support/encoded-run.ts';
import { told } from '../support/told.ts';

describe('DropNotice', () => {
  it('tells the first drop at once, with the reason and what helps', () => {
    const lines = told();
    new DropNotice(undefined, () => 0).add('queue_full', makeRun());

    expect(lines).toEqual([
      'warn: 1 run was dropped (queue_full): the queue was full; raise limits.queueRuns or limits.queueBytes',
    ]);
  });

  it.each([
    [59_999, 1],
    [60_000, 2],
    [60_001, 2],
  ])('has told %i ms later, after many more, %i lines', (laterMs, count) => {
    const lines = told();
    let nowMs = 0;
    const notice = new DropNotice(undefined, () => nowMs);
    notice.add('rejected', makeRun());
    for (let n = 0; n < 500; n++) notice.add('rejected', makeRun());
    nowMs = laterMs;
    notice.add('rejected', makeRun());

    expect(lines).toHaveLength(count);
    if (count === 2) expect(lines[1]).toMatch(/^warn: 501 runs were dropped \(rejected\)/);
  });

  it('tells at the end what has not been told, once', () => {
    const lines = told();
    const notice = new DropNotice(undefined, () => 0);
    notice.add('expired', makeRun());
    notice.add('closed', makeRun());
    notice.tell();
    notice.tell();

    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/^warn: 1 run was dropped \(closed\)/);
  });

  it('says what led to the last one', () => {
    const lines = told();
    const dropped: unknown[] = [];
    const run = makeRun();
    new DropNotice(
      (_, one) => dropped.push(one),
      () => 0,
    ).add('rejected', run, 'status 422');

    expect(lines).toEqual(['warn: 1 run was dropped (rejected): the service refuses them (last: status 422)']);
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

  it('names no run and no payload', () => {
    const lines = told();
    new DropNotice(undefined, () => 0).add('rejected', makeRun({ name: 'sk-secret', inputs: '"sk-secret"' }));

    expect(lines.join()).not.toContain('secret');
  });
});
