import { shownAddress } from '../../config/checker.ts';
import { type EnvironmentName, env } from '../../config/environment.ts';
import { durabilityOf, resolveSettings, type Settings } from '../../config/options.ts';
import { SERVICE, SETTINGS, type SettingKind, type SettingName } from '../../config/settings.ts';
import { collectProblems, flag, variableOf } from '../../config/variables.ts';
import { counted } from '../terminal-text.ts';
import { type Finding, fail, okFinding, warn } from './finding.ts';

/** Returns the environment variable that sets the sample rate to 0, if no trace is kept in spite of it. */
export function samplingOff(): EnvironmentName | undefined {
  const variable = variableOf('sampleRate');
  const isOff = variable !== undefined && Number(env(variable)) === 0 && variableOf('keep') === undefined;
  return isOff ? variable : undefined;
}

/**
 * Resolves the settings like an exporter with tracing turned on. Returns a finding for each variable that is set, and
 * where runs are sent. `files` has the file of each variable that a file sets.
 */
export function settingFindings(files: ReadonlyMap<string, string>): {
  readonly findings: readonly Finding[];
  readonly settings: Settings | undefined;
} {
  let settings: Settings | undefined;
  let isOn = true;
  const problems = collectProblems(() => {
    settings = resolveSettings({ tracing: true, log: 'silent' });
    isOn = flag('tracing', undefined, true);
    // `resolveSettings` validates these settings only for some endpoints, so they are validated here.
    durabilityOf({});
    flag('allowInsecure', undefined, false);
  });
  const services = settings?.capture.replication?.endpoints.length ?? 0;
  const findings = Object.entries(SETTINGS).flatMap(([name, { kind = 'secret', variables }]) => {
    const setting = name as SettingName;
    const used = services > 0 && SERVICE.includes(setting) ? undefined : variableOf(setting);
    const problem = problems.find((one) => one.setting === setting)?.problem ?? problemOf(setting, used, isOn);
    return variables
      .filter((variable) => env(variable) !== undefined)
      .map((variable) => {
        const file = files.get(variable);
        const origin = file === undefined ? '' : `, in ${file}`;
        // Values that are invalid or not used are hidden, because they may be secrets in the wrong variable.
        if (variable !== used) return okFinding(variable, `${hiddenValue(variable)}${origin}, not used`);
        const shown = problem === undefined ? shownValue(variable, kind) : hiddenValue(variable);
        return problem === undefined
          ? okFinding(variable, `${shown}${origin}`)
          : warn(variable, `${shown}${origin}: ${problem}`, `correct or unset ${variable}`);
      });
  });
  for (const { setting, problem } of problems) {
    if (setting === undefined || variableOf(setting) === undefined)
      findings.push(warn(setting ?? 'settings', problem, 'correct the environment variable'));
  }
  findings.push(...destinationFindings(settings, services, files));
  return { findings, settings };
}

/** Returns why no run is recorded although the value is valid. */
function problemOf(setting: SettingName, used: EnvironmentName | undefined, isOn: boolean): string | undefined {
  if (used === undefined) return undefined;
  if (setting === 'tracing' && !isOn) return 'tracing is off, and the checks below continue as if it were on';
  return used === samplingOff() ? 'the sample rate is 0, so no run is recorded' : undefined;
}

/** Tells where runs are sent, if anywhere. */
function* destinationFindings(settings: Settings | undefined, services: number, files: ReadonlyMap<string, string>) {
  const used = SERVICE.flatMap((setting) => variableOf(setting) ?? []);
  if (settings === undefined) {
    const reason = used.length === 0 ? 'there is no endpoint' : 'the endpoint, API key or workspace is invalid';
    yield fail('tracing', `off: ${reason}`, 'set RUNSPAN_ENDPOINT to the URL of the service, or use `runspan dev`');
    return;
  }
  const rest = services > 1 ? `, the first of ${services} services; the others are not checked` : '';
  yield okFinding('endpoint', `runs are sent to ${shownAddress(settings.endpoint)}${rest}`);
  const inFile = used.find((name) => files.has(name));
  if (inFile === undefined) return;
  yield warn(
    'tracing',
    `only ${files.get(inFile)} sets ${inFile}`,
    `start the program with \`node --env-file=${files.get(inFile)}\`, unless it reads the file itself, as with Next.js`,
  );
}

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
  return url !== undefined && /^https?:$/.test(url.protocol) ? shownAddress(url) : undefined;
}
