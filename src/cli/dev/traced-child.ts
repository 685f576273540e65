import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ignoreErrors } from '../../base/guard.ts';
import { type DevEnv, devVariable, env, environmentWith, LANGSMITH_TRACING } from '../../config/environment.ts';
import { SETTINGS } from '../../config/settings.ts';
import { type ChangeFeed, DEFAULT_SCOPE } from '../../receiver/store/store.ts';
import { variablesInFiles } from '../doctor/project.ts';

/**
 * Returns the environment for a command that uses runspan or the langsmith package. If the user has turned off
 * langsmith's tracing, it stays off, because langsmith and a runspan handler would both record each step.
 */
export function environmentFor(url: string, dev: DevEnv, apiKey?: string): NodeJS.ProcessEnv {
  const isTurnedOff = LANGSMITH_TRACING.some((name) => env(name)?.toLowerCase() === 'false');
  return environmentWith({
    RUNSPAN_ENDPOINT: url,
    RUNSPAN_TRACING: 'true',
    // As spans, runs would arrive only at their end.
    RUNSPAN_PROTOCOL: 'runs',
    // With a short delay, the page shows open runs early. Exchanges stay on this machine.
    ...devVariable(dev, { startDelayMs: 250, exchanges: true }),
    ...(apiKey !== undefined && { RUNSPAN_API_KEY: apiKey }),
    // runspan reads this variable too. A program can still set RUNSPAN_PROJECT itself, for example from a file.
    LANGSMITH_PROJECT: projectFor(process.cwd()),
    LANGSMITH_ENDPOINT: url,
    ...(!isTurnedOff && { LANGSMITH_TRACING: 'true' }),
    // The langsmith clients send nothing without an API key, even if the receiver requires none.
    LANGSMITH_API_KEY: apiKey ?? env('LANGSMITH_API_KEY') ?? dev.program,
    // If set, `LANGSMITH_RUNS_ENDPOINTS` would send the runs to other endpoints.
    LANGSMITH_RUNS_ENDPOINTS: undefined,
  });
}

/** Matches a package name. Other texts could contain characters that a variable cannot. */
const PACKAGE_NAME = /^(?=.{1,214}$)(?:@[\w.~-]+\/)?[\w.~-]+$/;

/**
 * Returns the project for a program in a folder: the first variable for the project in the environment, otherwise in
 * the files `.env` and `.env.local`, otherwise the name in the nearest package.json that has a valid name.
 */
function projectFor(folder: string): string | undefined {
  const inFiles = Object.assign({}, ...variablesInFiles(folder).map(([, variables]) => variables));
  const given = [
    ...SETTINGS.project.variables.map(env),
    ...SETTINGS.project.variables.map((name) => inFiles[name]?.trim()),
  ];
  return given.find((name) => name && !name.includes('\0')) ?? packageName(folder);
}

function packageName(folder: string): string | undefined {
  const text = ignoreErrors(() => readFileSync(join(folder, 'package.json'), 'utf8')) ?? '';
  const name: unknown = ignoreErrors(() => JSON.parse(text.replace(/^\ufeff/, '')).name);
  if (typeof name === 'string' && PACKAGE_NAME.test(name)) return name;
  return dirname(folder) === folder ? undefined : packageName(dirname(folder));
}

/** How long to wait for more runs, in milliseconds. A command's last request may arrive after the command ends. */
export const IDLE_MS = 300;
/** Maximum wait in milliseconds, in case another program keeps sending runs. */
const IDLE_WAIT_MAX_MS = 2_000;

export function waitForIdle(store: Pick<ChangeFeed, 'subscribe'>): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      unsubscribe();
      clearTimeout(idle);
      clearTimeout(limit);
      resolve();
    };
    const idle = setTimeout(finish, IDLE_MS);
    const limit = setTimeout(finish, IDLE_WAIT_MAX_MS);
    const unsubscribe = store.subscribe(DEFAULT_SCOPE, () => void idle.refresh());
  });
}
