import { onTestFinished } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';

/** Returns the lines logged until the test has finished. Lines that are logged only once can be logged again. */
export function logLines(level: 'warn' | 'debug' = 'debug'): string[] {
  const lines: string[] = [];
  diagnostics.forgetPlaces();
  diagnostics.setLog((of, message) => {
    if (level === 'debug' || of !== 'debug') lines.push(`${of}: ${message}`);
  });
  onTestFinished(() => {
    diagnostics.setLog('warn');
    diagnostics.forgetPlaces();
  });
  return lines;
}
