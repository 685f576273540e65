import { diagnostics } from '../base/diagnostics.ts';
import { nearWord } from '../base/near.ts';
import { parseFlag } from './checker.ts';
import { type EnvironmentName, env, OWN_VARIABLES, usesLangsmithService, variablesWith } from './environment.ts';
import { SERVICE, SETTINGS, type SettingName } from './settings.ts';

/** Returns the name of the environment variable for a setting, or undefined if no variable is set. */
export function variableOf(setting: SettingName): EnvironmentName | undefined {
  const isService = SERVICE.includes(setting);
  return SETTINGS[setting].variables.find(
    (name) => env(name) !== undefined && (!isService || name.startsWith('RUNSPAN_') !== usesLangsmithService()),
  );
}

/** Returns a boolean setting: the option, or else the variable. Returns `misread` if the value is no boolean. */
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
