import { diagnostics } from '../base/diagnostics.ts';
import { nearWord } from '../base/near.ts';
import {
  type EnvironmentName,
  env,
  OWN_VARIABLES,
  parseFlag,
  usesLangsmithService,
  variablesWith,
} from './environment.ts';

/** How the value of an environment variable is printed. A `word` is a number or one of a few fixed values. */
export type SettingKind = 'secret' | 'address' | 'word' | 'text';

/** A setting: its environment variables, the first of which takes precedence, how a value is printed, and the default. */
export interface Setting {
  readonly variables: readonly EnvironmentName[];
  readonly kind?: SettingKind;
  readonly otherwise?: string;
}

const TABLE = {
  endpoint: {
    variables: ['RUNSPAN_ENDPOINT', 'LANGSMITH_ENDPOINT', 'LANGCHAIN_ENDPOINT'],
    kind: 'address',
    otherwise: 'none',
  },
  protocol: { variables: ['RUNSPAN_PROTOCOL'], kind: 'word', otherwise: 'runs' },
  apiKey: {
    variables: ['RUNSPAN_API_KEY', 'LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY'],
    kind: 'secret',
    otherwise: 'none',
  },
  workspaceId: {
    variables: ['RUNSPAN_WORKSPACE_ID', 'LANGSMITH_WORKSPACE_ID', 'LANGCHAIN_WORKSPACE_ID'],
    kind: 'secret',
    otherwise: 'none',
  },
  project: {
    variables: ['RUNSPAN_PROJECT', 'LANGSMITH_PROJECT', 'LANGCHAIN_PROJECT'],
    kind: 'text',
    otherwise: '"default"',
  },
  projectId: { variables: ['RUNSPAN_PROJECT_ID'], kind: 'text', otherwise: 'none' },
  tracing: { variables: ['RUNSPAN_TRACING'], kind: 'word', otherwise: 'true' },
  sampleRate: {
    variables: ['RUNSPAN_SAMPLE_RATE', 'LANGSMITH_TRACING_SAMPLING_RATE', 'LANGCHAIN_TRACING_SAMPLING_RATE'],
    kind: 'word',
    otherwise: '1',
  },
  otelSampling: { variables: ['RUNSPAN_OTEL_SAMPLING'], kind: 'word', otherwise: 'true' },
  hideInputs: {
    variables: ['RUNSPAN_HIDE_INPUTS', 'LANGSMITH_HIDE_INPUTS', 'LANGCHAIN_HIDE_INPUTS'],
    kind: 'word',
    otherwise: 'false',
  },
  hideOutputs: {
    variables: ['RUNSPAN_HIDE_OUTPUTS', 'LANGSMITH_HIDE_OUTPUTS', 'LANGCHAIN_HIDE_OUTPUTS'],
    kind: 'word',
    otherwise: 'false',
  },
  propagateTo: { variables: ['RUNSPAN_PROPAGATE_TO'], kind: 'text', otherwise: 'none' },
  allowInsecure: { variables: ['RUNSPAN_ALLOW_INSECURE'], kind: 'word', otherwise: 'false' },
  compress: { variables: ['RUNSPAN_COMPRESS'], kind: 'word', otherwise: 'true, except on localhost' },
  durability: { variables: ['RUNSPAN_DURABILITY'], kind: 'word', otherwise: 'memory, or spill with runspan/register' },
  spoolDir: { variables: ['RUNSPAN_SPOOL_DIR'], kind: 'text', otherwise: 'in the home folder' },
  'limits.startDelayMs': { variables: ['RUNSPAN_START_DELAY_MS'], kind: 'word', otherwise: '2000' },
  log: { variables: ['RUNSPAN_LOG'], kind: 'word', otherwise: 'warn' },
  handleSignals: {
    variables: ['RUNSPAN_HANDLE_SIGNALS'],
    kind: 'word',
    otherwise: 'false, or SIGTERM with runspan/register',
  },
  proxy: { variables: ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] },
} as const;

export type SettingName = keyof typeof TABLE;

/** All settings that are read from environment variables. `docs/configuration.md` and `runspan doctor` list this table. */
export const SETTINGS: Readonly<Record<SettingName, Setting>> = TABLE;

/**
 * Settings that are always read from variables with the same prefix. Mixing prefixes could send an API key to the wrong
 * service.
 */
export const SERVICE: readonly SettingName[] = ['endpoint', 'apiKey', 'workspaceId'];

/** Returns the name of the environment variable for a setting, or undefined if no variable is set. */
export function variableOf(setting: SettingName): EnvironmentName | undefined {
  const isService = SERVICE.includes(setting);
  return SETTINGS[setting].variables.find(
    (name) => env(name) !== undefined && (!isService || name.startsWith('RUNSPAN_') !== usesLangsmithService()),
  );
}

/**
 * Returns a boolean setting. The option takes precedence over the environment variable. Returns `misread` if the value
 * is neither true nor false.
 */
export function flag(setting: SettingName, option: unknown, otherwise: boolean, misread: boolean = otherwise): boolean {
  if (typeof option === 'boolean') return option;
  const variable = variableOf(setting);
  if (option === undefined && variable === undefined) return otherwise;
  const meaning = parseFlag(option ?? env(variable as EnvironmentName));
  const value = meaning ?? misread;
  if (option !== undefined) complain(`expected \`${setting}\` to be true or false; ${value} is used`);
  else if (meaning === undefined) complain(`expected ${variable} to be true or false; ${value} is used`, setting);
  return value;
}

/** Reports variables whose names are misspelt. Other unknown variables may belong to the application. */
export function reportMisspelt(): void {
  for (const name of variablesWith('RUNSPAN_')) {
    const meant = nearWord(name, OWN_VARIABLES);
    if (meant !== undefined) complain(`${name} is not a variable of runspan, but ${meant} is`);
  }
}

/** A configuration problem. `setting` names the setting with an invalid value, if any. */
export interface SettingProblem {
  readonly setting: SettingName | undefined;
  readonly problem: string;
}

let collected: SettingProblem[] | undefined;

/** Logs a configuration problem. `problem` must not contain the setting's value, because the value may be a secret. */
export function complain(problem: string, setting?: SettingName): void {
  if (collected !== undefined) collected.push({ setting, problem });
  else diagnostics.warnOnce(`configuration ${problem}`, `configuration: ${problem}.`);
}

/** Calls `resolve`, and returns the configuration problems instead of logging them. */
export function collectProblems(resolve: () => void): readonly SettingProblem[] {
  const problems: SettingProblem[] = [];
  collected = problems;
  try {
    resolve();
  } finally {
    collected = undefined;
  }
  return problems;
}
