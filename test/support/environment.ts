import { vi } from 'vitest';

/** Until the test has finished, only `variables` configure tracing in the environment. */
export function environmentOf(variables: Readonly<Record<string, string>> = {}): void {
  for (const name of Object.keys(process.env))
    if (/^(RUNSPAN|LANGSMITH|LANGCHAIN|OTEL)_/.test(name)) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
}
