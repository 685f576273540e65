import { onTestFinished } from 'vitest';
import type { Limits, Tuning } from '#src/config/limits.ts';
import { type ConfigureOptions, resolveSettings, type Settings } from '#src/config/options.ts';
import { type ExporterTime, exporterFor } from '#src/delivery/create-exporter.ts';
import { Ledger } from '#src/delivery/ledger.ts';
import { ended, makeRun } from './encoded-run.ts';

type Exporter = ReturnType<typeof exporterFor>;

const quick: Partial<Limits & Tuning> = { lingerMs: 5, startDelayMs: 0, retryDelayMs: 5, retryDelayMaxMs: 20 };

/**
 * Returns an exporter as an application has it, with short waits, or with the given time. It is closed after the test:
 * a service of a later test can have the port of a closed one.
 */
export function exporterTo(
  endpoint: string,
  limits: Partial<Limits & Tuning> = {},
  options: ConfigureOptions = {},
  time?: ExporterTime,
  changes?: Partial<Settings>,
): Exporter {
  const given = resolveSettings({ endpoint, log: 'silent', ...options }) as Settings;
  const settings = { ...given, limits: { ...given.limits, ...quick, ...limits }, ...changes };
  const exporter = exporterFor(settings, new Ledger(), () => {}, time);
  onTestFinished(async () => void (await exporter.close({ timeoutMs: 1 })));
  return exporter;
}

export function recordSingles(exporter: Exporter, count: number, inputs = '{"q":1}'): string[] {
  return Array.from({ length: count }, () => {
    const run = makeRun({ inputs });
    exporter.start(run);
    exporter.end(ended(run, { outputs: '{"a":1}' }));
    return run.id;
  });
}
