import { expect, onTestFinished, test } from 'vitest';
import { createExporter, startRun } from '#src/index.ts';

const EVENTS = ['beforeExit', 'exit', 'uncaughtException', 'unhandledRejection', 'SIGTERM', 'SIGINT'];

const listeners = (): number[] => EVENTS.map((event) => process.listenerCount(event));

test('a thousand exporters share one listener per event of the process, and remove it when they close', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  const before = listeners();
  const exporters = Array.from({ length: 1_000 }, () =>
    createExporter({
      endpoint: 'http://127.0.0.1:9',
      handleSignals: true,
      log: 'silent',
      limits: { lingerMs: 1_000_000 },
    }),
  );
  expect(listeners()).toEqual(before);
  for (const exporter of exporters) startRun({ name: 'work', exporter }).end();
  const added = listeners().map((count, at) => count - (before[at] ?? 0));
  expect(added).toEqual([1, 1, 0, 0, 1, 1]);

  await Promise.all(exporters.map((exporter) => exporter.close({ timeoutMs: 0 })));
  expect(listeners()).toEqual(before);
  expect(warnings).toEqual([]);
});
