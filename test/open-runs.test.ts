import { expect, it, onTestFinished } from 'vitest';
import { createExporter, startRun } from '../src/index.ts';
import { createReceiver } from '../src/receiver.ts';
import { addsUp } from './support/adds-up.ts';

it.each([
  ['before its start is sent', false, 0],
  ['after its start was sent', true, 0],
  ['after it was sent as incomplete', true, 1],
])('a run beyond limits.openRuns keeps its outputs when it ends %s', async (_, isPosted, incompletes) => {
  const receiver = await createReceiver({ port: 0 });
  onTestFinished(() => receiver.close());
  const exporter = createExporter({
    endpoint: receiver.url,
    limits: { openRuns: 1, lingerMs: 1_000_000 },
    log: 'silent',
  });
  const named = async (name: string) => (await receiver.runs()).find((run) => run.name === name);
  const oldest = startRun({ name: 'oldest', inputs: { q: 1 }, exporter });
  if (isPosted) await exporter.flush();
  const others = [startRun({ name: 'other', exporter })];
  for (let count = 0; count < incompletes; count++) {
    await exporter.flush();
    expect((await named('oldest'))?.error).toMatch(/^Incomplete: /);
  }
  expect(addsUp(exporter.stats())).toBe(true);
  oldest.end({ a: 1 });
  for (const run of others) run.end();
  await exporter.close();

  expect(exporter.stats()).toMatchObject({ created: 2, open: 0, sent: 2, dropped: 0 });
  const run = await named('oldest');
  expect(run).toMatchObject({ inputs: { q: 1 }, outputs: { a: 1 } });
  expect(run?.error ?? '').toBe('');
});
