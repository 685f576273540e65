import type { Limits } from '../../src/base/limits.ts';
import { type ExporterTime, exporterFor } from '../../src/export/create-exporter.ts';
import { Ledger } from '../../src/export/ledger.ts';
import type { ConfigureOptions } from '../../src/export/settings.ts';
import { resolveSettings, type Settings } from '../../src/export/settings.ts';
import { ended, makeRun } from './encoded-run.ts';

type Exporter = ReturnType<typeof exporterFor>;

const quick: Partial<Limits> = { lingerMs: 5, startDelayMs: 0, retryDelayMs: 5, retryDelayMaxMs: 20 };

/** An exporter as it is put together for an application, with short waits, or with those of a test's own time. */
export function exporterTo(
  endpoint: string,
  limits: Partial<Limits> = {},
  options: ConfigureOptions = {},
  time?: ExporterTime,
): Exporter {
  const settings = resolveSettings({ endpoint, limits: { ...quick, ...limits }, log: 'silent', ...options });
  return exporterFor(settings as Settings, new Ledger(), () => {}, time);
}

/** Records `count` traces of a root and a child, each with payloads, and answers with their ids. */
export function record(exporter: Exporter, count: number): string[] {
  return Array.from({ length: count }, (_, n) => {
    const root = makeRun({ name: 'root', inputs: `{"n":${n}}` });
    const child = makeRun({ name: 'child', inputs: `{"n":${n}}` }, root);
    exporter.start(root);
    exporter.start(child);
    exporter.end(ended(child, { outputs: '{"ok":true}' }));
    exporter.end(ended(root, { outputs: '{"ok":true}' }));
    return [root.id, child.id];
  }).flat();
}

/** Records runs by themselves, and answers with their ids. */
export function recordSingles(exporter: Exporter, count: number): string[] {
  return Array.from({ length: count }, () => {
    const run = makeRun({ inputs: '{"q":1}' });
    exporter.start(run);
    exporter.end(ended(run, { outputs: '{"a":1}' }));
    return run.id;
  });
}
