import { onTestFinished } from 'vitest';
import { diagnostics } from '../../src/base/diagnostics.ts';

/** The lines of the log from now until the test has finished, with all lines allowed again that are logged once only. */
export function told(level: 'warn' | 'debug' = 'debug'): string[] {
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
