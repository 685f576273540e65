import { onTestFinished } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';

/** The lines that diagnostics tell from now until the test has finished, every place being new to them. */
export function told(): string[] {
  const lines: string[] = [];
  diagnostics.forgetPlaces();
  diagnostics.setLog((level, message) => lines.push(`${level}: ${message}`));
  onTestFinished(() => {
    diagnostics.setLog('warn');
    diagnostics.forgetPlaces();
  });
  return lines;
}
