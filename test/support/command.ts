import { vi } from 'vitest';
import { diagnostics } from '#src/base/diagnostics.ts';
import { main } from '#src/cli/program.ts';
import { bareEnvironment } from './program.ts';

export interface CommandResult {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command in this process. Of the variables of runspan, the environment contains only `env`. */
export async function runMain(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  diagnostics.forgetPlaces();
  const { RUNSPAN_STORE: _, ...bare } = bareEnvironment();
  for (const name of Object.keys(process.env)) if (!(name in bare)) vi.stubEnv(name, undefined);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  try {
    const ending = await main(args, {
      stdout: { write: (text: unknown) => stdout.push(String(text)) > 0 },
      stderr: { write: (text: unknown) => stderr.push(String(text)) > 0 },
    });
    const code = typeof ending === 'number' ? ending : undefined;
    return { code, stdout: stdout.join(''), stderr: stderr.join('') };
  } finally {
    vi.unstubAllEnvs();
    diagnostics.setLog('warn');
  }
}
