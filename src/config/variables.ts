import { diagnostics } from '../base/diagnostics.ts';
import { type EnvironmentName, env, parseFlag, usesLangsmithService } from './environment.ts';

export type SettingName =
  | 'endpoint'
  | 'apiKey'
  | 'workspaceId'
  | 'project'
  | 'projectId'
  | 'tracing'
  | 'sampleRate'
  | 'otelSampling'
  | 'hideInputs'
  | 'hideOutputs'
  | 'propagateTo'
  | 'allowInsecure'
  | 'compress'
  | 'durability'
  | 'spoolDir'
  | 'limits.startDelayMs'
  | 'log'
  | 'handleSignals'
  | 'proxy';

export const VARIABLES: Readonly<Record<SettingName, readonly EnvironmentName[]>> = {
  endpoint: ['RUNSPAN_ENDPOINT', 'LANGSMITH_ENDPOINT', 'LANGCHAIN_ENDPOINT'],
  apiKey: ['RUNSPAN_API_KEY', 'LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY'],
  workspaceId: ['RUNSPAN_WORKSPACE_ID', 'LANGSMITH_WORKSPACE_ID', 'LANGCHAIN_WORKSPACE_ID'],
  project: ['RUNSPAN_PROJECT', 'LANGSMITH_PROJECT', 'LANGCHAIN_PROJECT'],
  projectId: ['RUNSPAN_PROJECT_ID'],
  tracing: ['RUNSPAN_TRACING'],
  sampleRate: ['RUNSPAN_SAMPLE_RATE', 'LANGSMITH_TRACING_SAMPLING_RATE', 'LANGCHAIN_TRACING_SAMPLING_RATE'],
  otelSampling: ['RUNSPAN_OTEL_SAMPLING'],
  hideInputs: ['RUNSPAN_HIDE_INPUTS', 'LANGSMITH_HIDE_INPUTS', 'LANGCHAIN_HIDE_INPUTS'],
  hideOutputs: ['RUNSPAN_HIDE_OUTPUTS', 'LANGSMITH_HIDE_OUTPUTS', 'LANGCHAIN_HIDE_OUTPUTS'],
  propagateTo: ['RUNSPAN_PROPAGATE_TO'],
  allowInsecure: ['RUNSPAN_ALLOW_INSECURE'],
  compress: ['RUNSPAN_COMPRESS'],
  durability: ['RUNSPAN_DURABILITY'],
  spoolDir: ['RUNSPAN_SPOOL_DIR'],
  'limits.startDelayMs': ['RUNSPAN_START_DELAY_MS'],
  log: ['RUNSPAN_LOG'],
  handleSignals: [],
  proxy: ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'],
};

/**
 * Settings that are always read from variables with the same prefix. Mixing prefixes could send an API key to the wrong
 * service.
 */
const SERVICE: readonly SettingName[] = ['endpoint', 'apiKey', 'workspaceId'];

/** Returns the name of the environment variable for a setting, or undefined if no variable is set. */
export function variableOf(setting: SettingName): EnvironmentName | undefined {
  const isService = SERVICE.includes(setting);
  return VARIABLES[setting].find(
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
