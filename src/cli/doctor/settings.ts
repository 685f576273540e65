import { readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseEnv } from 'node:util';
import { ignoreErrors } from '../../base/guard.ts';
import { addressOf } from '../../config/checker.ts';
import {
  type EnvironmentName,
  env,
  LANGSMITH_DEFAULT_ENDPOINT,
  langsmithEnv,
  usesLangsmithService,
  variablesWith,
} from '../../config/environment.ts';
import { durabilityOf, resolveSettings, type Settings } from '../../config/options.ts';
import {
  collectProblems,
  flag,
  SETTINGS,
  type SettingKind,
  type SettingName,
  variableOf,
} from '../../config/variables.ts';
import { PACKAGE_FOLDER } from '../command-line.ts';
import { counted } from '../terminal-text.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

const SERVICE: readonly SettingName[] = ['endpoint', 'apiKey', 'workspaceId'];

const SERVICES = 'LANGSMITH_RUNS_ENDPOINTS';

const OTHER_VARIABLES: readonly EnvironmentName[] = [
  'RUNSPAN_PROGRAM',
  'RUNSPAN_STORE',
  'RUNSPAN_RECEIVER_KEY',
  'RUNSPAN_RECEIVER_WRITE_KEY',
  'RUNSPAN_CONTROL_PLANE_URL',
  'RUNSPAN_CONTROL_PLANE_KEY',
  'RUNSPAN_CONTROL_PLANE_SPELLING',
];

/** Returns the environment variable that sets the sample rate to 0, if any. */
export function samplingOff(): EnvironmentName | undefined {
  const variable = variableOf('sampleRate');
  return variable !== undefined && Number(env(variable)) === 0 ? variable : undefined;
}

/** Returns the keys and workspace ids in the environment, which findings must not contain. */
export function secretsOfEnvironment(): string[] {
  return [...SETTINGS.apiKey.variables, ...SETTINGS.workspaceId.variables].flatMap((name) => env(name) ?? []);
}

/** Resolves the settings like an exporter with tracing turned on. Returns one finding per setting. */
export function settingFindings(): { readonly findings: readonly Finding[]; readonly settings: Settings | undefined } {
  let settings: Settings | undefined;
  let isOn = true;
  const problems = collectProblems(() => {
    settings = resolveSettings({ tracing: true, log: 'silent' });
    isOn = flag('tracing', undefined, true);
    // `resolveSettings` validates these settings only for some endpoints, so they are validated here.
    durabilityOf({});
    flag('allowInsecure', undefined, false);
    flag('compress', undefined, true);
  });
  const findings = Object.entries(SETTINGS).flatMap(([name, { kind, otherwise = '' }]) => {
    if (kind === undefined) return [];
    const setting = name as SettingName;
    const listed = settings === undefined ? undefined : listedFinding(setting, settings);
    if (listed !== undefined) return [listed, ...unusedFindings(setting, SERVICES)];
    const used = variableOf(setting);
    const problem = problems.find((one) => one.setting === setting)?.problem;
    return [
      used === undefined
        ? ok(setting, defaultOf(setting, otherwise, settings))
        : findingOf(setting, kind, used, problem, isOn),
      ...unusedFindings(setting, used),
    ];
  });
  for (const { setting = 'settings', problem } of problems) {
    if (SETTINGS[setting as SettingName]?.kind === undefined)
      findings.push(warn(setting, problem, 'correct the environment variable'));
  }
  const services = settings?.capture.replication?.endpoints.length ?? 0;
  if (services > 1)
    findings.push(
      warn(SERVICES, `${services} services: only the first one is checked`, 'to check another one, list it first'),
    );
  findings.push(...unknownVariables());
  if (settings === undefined) {
    const isInvalid = problems.some(({ setting }) => setting !== undefined && SERVICE.includes(setting));
    findings.push(
      isInvalid
        ? fail('tracing', 'off: the endpoint, the API key or the workspace is invalid', 'correct the setting')
        : noEndpoint(),
    );
  }
  return { findings, settings };
}

/** Variables with which a program sends runs. LangSmith's own client has a default endpoint. */
const ENDPOINTS: readonly string[] = [...SETTINGS.endpoint.variables, 'LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY'];

function noEndpoint(): Finding {
  for (const [file, variables] of variablesInFiles(process.cwd())) {
    const name = ENDPOINTS.find((one) => variables[one]);
    if (name === undefined) continue;
    const doctor = `node --env-file=${file} ${relative(process.cwd(), join(PACKAGE_FOLDER, 'dist/cli/main.js'))} doctor`;
    return fail(
      'tracing',
      `off: ${file} sets ${name}, but the environment does not`,
      `start the program with \`node --env-file=${file}\`, unless it reads the file itself; to check these settings, run \`${doctor}\``,
    );
  }
  return fail('tracing', 'off: there is no endpoint', 'set RUNSPAN_ENDPOINT to the URL of the service');
}

/** Returns the variables in the files `.env` and `.env.local` of a folder, by file. The last file takes precedence. */
export function variablesInFiles(folder: string): [file: string, variables: NodeJS.Dict<string>][] {
  return ['.env', '.env.local'].flatMap((file) => {
    const path = join(folder, file);
    // Reading a named pipe could wait for ever.
    const text = ignoreErrors(() => (statSync(path).isFile() ? readFileSync(path, 'utf8') : undefined));
    return text === undefined ? [] : [[file, parseEnv(text)]];
  });
}

function findingOf(
  setting: SettingName,
  kind: SettingKind,
  used: EnvironmentName,
  problem: string | undefined,
  isOn: boolean,
): Finding {
  // Invalid values are not printed, because they may be secrets in the wrong variable.
  if (problem !== undefined) {
    return warn(setting, `${hiddenValue(used)}, from ${used}: ${problem}`, `correct ${used}`);
  }
  const text = `${shownValue(used, kind)}, from ${used}`;
  if (setting === 'tracing' && !isOn) {
    return warn(
      setting,
      `${text}: tracing is off; the checks below continue as if tracing were on`,
      'to turn tracing on, unset this variable',
    );
  }
  if (used === samplingOff())
    return warn(setting, `${text}: no run is recorded`, 'set this variable to 1, or unset it');
  return ok(setting, text);
}

/** Returns the finding for a setting of the first service in `LANGSMITH_RUNS_ENDPOINTS`. */
function listedFinding(setting: SettingName, { endpoint, capture }: Settings): Finding | undefined {
  const [first] = capture.replication?.endpoints ?? [];
  if (first === undefined || !['endpoint', 'apiKey'].includes(setting)) return undefined;
  const key = first.apiKey === '' ? 'none' : `set (${counted(first.apiKey.length, 'character')})`;
  return ok(setting, `${setting === 'endpoint' ? addressOf(endpoint) : key}, from ${SERVICES}`);
}

function defaultOf(setting: SettingName, otherwise: string, settings: Settings | undefined): string {
  if (setting === 'endpoint' && settings?.otlp !== undefined)
    return `${addressOf(settings.endpoint)}, by the variables of OpenTelemetry or by default`;
  const isLangsmith = setting === 'endpoint' && usesLangsmithService() && langsmithEnv('API_KEY') !== undefined;
  return isLangsmith ? `${LANGSMITH_DEFAULT_ENDPOINT}, the default of LangSmith` : `${otherwise}, the default`;
}

/** Returns a finding for each environment variable that is set for `setting` but not used. */
function unusedFindings(setting: SettingName, used: EnvironmentName | undefined): Finding[] {
  let reason = `${used} takes precedence`;
  if (SERVICE.includes(setting) && !usesLangsmithService()) {
    const isSet = SERVICE.some((name) => variableOf(name) !== undefined);
    reason = isSet
      ? 'a variable with the prefix RUNSPAN_ sets the endpoint, the API key or the workspace'
      : 'neither LANGSMITH_TRACING nor LANGCHAIN_TRACING_V2 is true';
  }
  const unused = SETTINGS[setting].variables.filter((name) => name !== used && env(name) !== undefined);
  // The values have not been validated, so they are hidden.
  return unused.map((name) => ok(name, `${hiddenValue(name)}, not used: ${reason}`));
}

function unknownVariables(): Finding[] {
  const known: readonly string[] = [
    ...Object.values(SETTINGS).flatMap(({ variables }) => variables),
    ...OTHER_VARIABLES,
  ];
  return variablesWith('RUNSPAN_')
    .filter((name) => !known.includes(name))
    .map((name) =>
      warn(
        name,
        'is not a known variable',
        'correct its name; the configuration page of the documentation lists all variables',
      ),
    );
}

/** Maximum number of characters printed from a value. */
const SHOWN_MAX = 100;

function shownValue(name: EnvironmentName, kind: SettingKind): string {
  const value = env(name) ?? '';
  if (kind === 'address') return addressIn(value) ?? `${hiddenValue(name)}, not an http or https URL`;
  if (kind === 'secret' || value.length > SHOWN_MAX) return hiddenValue(name);
  return kind === 'word' ? value : JSON.stringify(value);
}

function hiddenValue(name: EnvironmentName): string {
  return `set (${counted(env(name)?.length ?? 0, 'character')})`;
}

/** Returns the URL in a text, without its user, password, query and fragment. Returns undefined if there is none. */
export function addressIn(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? addressOf(url) : undefined;
}
