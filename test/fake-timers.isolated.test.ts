// In a file of its own: whatever is loaded at the first send is loaded under the fake timers.
import { expect, onTestFinished, test, vi } from 'vitest';
import { configure, flush, shutdown, traceable } from '#src/index.ts';
import { createReceiver } from '#src/receiver.ts';

test('runs are delivered with real times while timers and clock are fake', async () => {
  const receiver = await createReceiver({ strict: true });
  vi.useFakeTimers({ now: 0 });
  onTestFinished(async () => {
    await shutdown();
    await receiver.close();
  });
  configure({ endpoint: receiver.url });
  const work = traceable(async (n: number) => n + 1, { name: 'work' });
  expect([await work(1), await work(2)]).toEqual([2, 3]);

  expect(await flush()).toEqual({ ok: true, pending: 0 });
  const runs = await receiver.runs();
  expect(runs.map(({ outputs }) => outputs?.outputs).sort()).toEqual([2, 3]);
  expect(Date.now()).toBe(0);
  for (const { start_time } of runs) expect(start_time > '2020').toBe(true);
});
