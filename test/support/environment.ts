import { vi } from 'vitest';
import type { Tuning } from '#src/config/limits.ts';

/** Until the test has finished, only `variables` configure tracing in the environment. */
export function environmentOf(variables: Readonly<Record<string, string>> = {}): void {
  for (const name of Object.keys(process.env))
    if (/^(RUNSPAN|LANGSMITH|LANGCHAIN|OTEL)_/.test(name)) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
}

/** Until the test has finished, new exporters have these limits, which are no options. */
export function tune(limits: Partial<Tuning>): void {
  vi.stubEnv('RUNSPAN_DEV', JSON.stringify({ limits }));
}
