import '../support/virtual-timers.ts';

import { expect, test, vi } from 'vitest';
import { Subscribers } from '#src/receiver/store/subscribers.ts';
import { logLines } from '../support/log-lines.ts';
import { virtualClock } from '../support/virtual-timers.ts';

test('every deleted run is logged within a minute, in at most one line per limit and minute', async () => {
  vi.spyOn(performance, 'now').mockImplementation(() => virtualClock.nowMs);
  const lines = logLines('warn');
  const subscribers = new Subscribers();
  const report = (runs: number, option = 'age', level: 'info' | 'warn' = 'info') =>
    subscribers.report({ tenant: '', traces: [], forgotten: { traces: 2, runs }, limit: { option, level } });
  for (const runs of [37, 800, 57]) report(runs);
  report(9, 'size', 'warn');
  await virtualClock.advance(60_000);
  report(5);
  await virtualClock.advance(60_000);
  const line = (traces: number, runs: number, limit = 'age', level = 'info') =>
    `${level}: the receiver's store has deleted ${traces} traces with ${runs} runs, the oldest first, to stay within ${limit}`;
  expect(lines).toEqual([line(2, 37), line(4, 857), line(2, 9, 'size', 'warn'), line(2, 5)]);
});
