import { expect, onTestFinished, test } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';
import { ForgottenNotice } from '../../src/receiver/store/forgotten-notice.ts';

function makeNotice() {
  const lines: string[] = [];
  diagnostics.setLog((level, message) => lines.push(`${level}: ${message}`));
  onTestFinished(() => diagnostics.setLog('warn'));
  const clock = { nowMs: 5 };
  return { clock, lines, notice: new ForgottenNotice(() => clock.nowMs, 'runsMax and bytesMax') };
}

test('what is forgotten is told at once, and then summed up once a minute', () => {
  const { clock, lines, notice } = makeNotice();
  notice.add({ traces: 1, runs: 7 });
  expect(lines).toEqual([expect.stringMatching(/^warn: the receiver's store has forgotten 1 trace of 7 runs,/)]);
  for (let index = 0; index < 3; index += 1) notice.add({ traces: 2, runs: 10 });
  clock.nowMs += 59_999;
  notice.add({ traces: 1, runs: 1 });
  expect(lines).toHaveLength(1);
  clock.nowMs += 1;
  notice.add({ traces: 1, runs: 1 });
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain('8 traces of 32 runs,');
});
