import { afterEach, describe, expect, it } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { DropNotice } from '../../src/export/drop-notice.ts';
import { makeRun } from '../support/encoded-run.ts';

function told(): string[] {
  const lines: string[] = [];
  diagnostics.setLog((_, message) => lines.push(message));
  return lines;
}

afterEach(() => diagnostics.setLog('warn'));

describe('DropNotice', () => {
  it('tells the first drop at once, with the reason and what helps', () => {
    const lines = told();
    new DropNotice(undefined, () => 0).add('queue_full', makeRun());

    expect(lines).toEqual([
      '1 run was dropped (queue_full): the queue was full; raise limits.queueRuns or limits.queueBytes, or sample',
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
    if (count === 2) expect(lines[1]).toMatch(/^501 runs were dropped \(rejected\)/);
  });

  it('tells at the end what has not been told, once', () => {
    const lines = told();
    const notice = new DropNotice(undefined, () => 0);
    notice.add('expired', makeRun());
    notice.add('closed', makeRun());
    notice.tell();
    notice.tell();

    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/^1 run was dropped \(closed\)/);
  });

  it('names no run and no payload', () => {
    const lines = told();
    new DropNotice(undefined, () => 0).add('rejected', makeRun({ name: 'sk-secret', inputs: '"sk-secret"' }));

    expect(lines.join()).not.toContain('secret');
  });
});
