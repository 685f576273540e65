import { expect, onTestFinished, test } from 'vitest';
import { createExporter, startRun } from '../src/index.ts';

const EVENTS = ['beforeExit', 'exit', 'uncaughtException', 'unhandledRejection', 'SIGTERM', 'SIGINT'];

const listeners = (): number[] => EVENTS.map((event) => process.listenerCount(event));

test('a thousand exporters listen to the process as one, and not at all when they have closed', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  const before = listeners();
  const exporters = Array.from({ length: 1_000 }, () =>
    createExporter({ endpoint: 'http://127.0.0.1:9', log: 'silent', limits: { lingerMs: 1_000_000 } }),
  );
  expect(listeners()).toEqual(before);
  for (const exporter of exporters) startRun({ name: 'work', exporter }).end();
  const [beforeExit = 0, exit = 0, ...others] = before;
  expect(listeners()).toEqual([beforeExit + 1, exit + 1, ...others]);

  await Promise.all(exporters.map((exporter) => exporter.close({ timeoutMs: 0 })));
  expect(listeners()).toEqual(before);
  expect(warnings).toEqual([]);
});
