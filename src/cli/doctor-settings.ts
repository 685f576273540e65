import { diagnostics, type Log } from '../base/diagnostics.ts';
import {
  type EnvironmentName,
  env,
  LANGSMITH_DEFAULT_ENDPOINT,
  langsmithEnv,
  usesLangsmithService,
  variablesWith,
} from '../base/env.ts';
import { flag } from '../export/service-settings.ts';
import { durabilityOf, resolveSettings, type Settings } from '../export/settings.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** What the value of a variable is: a word is one of a few, or a number. */
type Kind = 'secret' | 'address' | 'word' | 'text';

/** A setting with the variables that it comes from, the first that is set; those of `service` belong together. */
interface Row {
  readonly setting: string;
  readonly kind: Kind;
  readonly variables: readonly EnvironmentName[];
  readonly otherwise: string;
  readonly group?: 'service';
  /** How a complaint begins that names no variable. */
  readonly complaint?: string;
}

const SAMPLING = ['RUNSPAN_SAMPLE_RATE', 'LANGSMITH_TRACING_SAMPLING_RATE', 'LANGCHAIN_TRACING_SAMPLING_RATE'] as const;

const ROWS: readonly Row[] = [
  {
    setting: 'endpoint',
    kind: 'address',
    variables: ['RUNSPAN_ENDPOINT', 'LANGSMITH_ENDPOINT', 'LANGCHAIN_ENDPOINT'],
    otherwise: 'none',
    group: 'service',
    complaint: 'the endpoint ',
  },
  {
    setting: 'apiKey',
    kind: 'secret',
    variables: ['RUNSPAN_API_KEY', 'LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY'],
    otherwise: 'none',
    group: 'service',
    complaint: 'the API key has ',
  },
  {
    setting: 'workspaceId',
    kind: 'secret',
    variables: ['RUNSPAN_WORKSPACE_ID', 'LANGSMITH_WORKSPACE_ID', 'LANGCHAIN_WORKSPACE_ID'],
    otherwise: 'none',
    group: 'service',
    complaint: 'the workspace id has ',
  },
  {
    setting: 'project',
    kind: 'text',
    variables: ['RUNSPAN_PROJECT', 'LANGSMITH_PROJECT', 'LANGCHAIN_PROJECT'],
    otherwise: '"default"',
  },
  { setting: 'projectId', kind: 'text', variables: ['RUNSPAN_PROJECT_ID'], otherwise: 'none' },
  { setting: 'tracing', kind: 'word', variables: ['RUNSPAN_TRACING'], otherwise: 'true' },
  {
    setting: 'sampleRate',
    kind: 'word',
    variables: SAMPLING,
    otherwise: '1',
  },
  {
    setting: 'hideInputs',
    kind: 'word',
    variables: ['RUNSPAN_HIDE_INPUTS', 'LANGSMITH_HIDE_INPUTS', 'LANGCHAIN_HIDE_INPUTS'],
    otherwise: 'false',
  },
  {
    setting: 'hideOutputs',
    kind: 'word',
    variables: ['RUNSPAN_HIDE_OUTPUTS', 'LANGSMITH_HIDE_OUTPUTS', 'LANGCHAIN_HIDE_OUTPUTS'],
    otherwise: 'false',
  },
  { setting: 'allowInsecure', kind: 'word', variables: ['RUNSPAN_ALLOW_INSECURE'], otherwise: 'false' },
  { setting: 'durability', kind: 'word', variables: ['RUNSPAN_DURABILITY'], otherwise: 'memory' },
  { setting: 'spoolDir', kind: 'text', variables: ['RUNSPAN_SPOOL_DIR'], otherwise: 'in the home folder' },
  { setting: 'limits.startDelayMs', kind: 'word', variables: ['RUNSPAN_START_DELAY_MS'], otherwise: '2000' },
  { setting: 'log', kind: 'word', variables: ['RUNSPAN_LOG'], otherwise: 'warn' },
];

/** Characters of a text that are shown. */
const SHOWN_MAX = 100;

/** Variables whose values are told nowhere. */
const SECRET: readonly EnvironmentName[] = ROWS.filter(({ kind }) => kind === 'secret').flatMap(
  ({ variables }) => variables,
);

/** The variable by which no run is recorded, if there is one. */
export function samplingOff(): EnvironmentName | undefined {
  const used = SAMPLING.find((name) => env(name) !== undefined);
  return used !== undefined && Number(env(used)) === 0 ? used : undefined;
}

/** The secrets of the environment, so that no message repeats one. */
export function secretsOfEnvironment(): string[] {
  return SECRET.flatMap((name) => env(name) ?? []);
}

/** What settings the environment gives, each with where it comes from, and the settings that follow from it. */
export function settingFindings(): { readonly findings: readonly Finding[]; readonly settings: Settings | undefined } {
  const complaints: string[] = [];
  const log: Log = (level, message) => {
    if (level !== 'debug') complaints.push(message.replace(/^configuration: |\.$/g, ''));
  };
  // What is wrong with RUNSPAN_LOG is told before the settings take effect.
  diagnostics.setLog(log);
  // As if tracing were on: what is turned off may be looked into as well.
  const settings = resolveSettings({ tracing: true, log });
  const isOn = flag('tracing', undefined, ['RUNSPAN_TRACING'], true);
  // Whatever the others are: without an endpoint, or with one of https, these are not read.
  durabilityOf({});
  flag('allowInsecure', undefined, ['RUNSPAN_ALLOW_INSECURE'], false);
  const findings = ROWS.flatMap((row) => findingsOf(row, complaints));
  const others = complaints.filter((complaint) => !ROWS.some((row) => isAbout(row, complaint)));
  for (const complaint of others) {
    const check = /^https?_proxy /i.test(complaint) ? 'proxy' : 'settings';
    findings.push(warn(check, complaint, 'correct the variable that it names'));
  }
  findings.push(...unknownVariables());
  if (!isOn) {
    findings.push(
      warn('tracing', 'turned off by RUNSPAN_TRACING', 'unset it to trace; what follows is as if it were on'),
    );
  }
  if (settings === undefined) {
    const isRefused = ROWS.some((row) => row.group === 'service' && complaints.some((one) => isAbout(row, one)));
    findings.push(
      isRefused
        ? fail('tracing', 'off: a setting of the service is refused', 'correct what is warned of above')
        : fail('tracing', 'off: there is no usable endpoint', 'set RUNSPAN_ENDPOINT to the address of the service'),
    );
  }
  // The log stays ours: what is checked later complains to nobody else.
  diagnostics.setLog('silent');
  return { findings, settings };
}

function findingsOf(row: Row, complaints: readonly string[]): Finding[] {
  const { setting, kind, variables, otherwise, group } = row;
  const present = variables.filter((name) => env(name) !== undefined);
  const source = sourceOfService();
  const isUsed = (name: EnvironmentName): boolean =>
    group === undefined || (source !== 'none' && name.startsWith('RUNSPAN_') === (source === 'RUNSPAN_'));
  const used = present.find(isUsed);
  const isTheirs = setting === 'endpoint' && source === 'LANGSMITH_' && langsmithEnv('API_KEY') !== undefined;
  const unset = isTheirs ? `${LANGSMITH_DEFAULT_ENDPOINT}, the default of LangSmith` : `${otherwise}, the default`;
  const findings = [used === undefined ? ok(setting, unset) : usedFinding(row, used, complaints)];
  for (const name of present) {
    if (name === used) continue;
    const isSecond = group === undefined || (used !== undefined && isUsed(name));
    const why = isSecond ? `${used} comes first` : reasonAgainst(name);
    // Nobody has checked the word of a variable that is not used.
    const told = kind === 'word' ? hiddenValue(name) : shownValue(name, kind);
    findings.push(ok(name, `${told}, not used: ${why}`));
  }
  return findings;
}

function usedFinding(row: Row, used: EnvironmentName, complaints: readonly string[]): Finding {
  const complaint = complaints.find((one) => isAbout(row, one));
  // What does not hold may have come into the wrong variable.
  if (complaint !== undefined) {
    return warn(row.setting, `${hiddenValue(used)}, from ${used}: ${complaint}`, `correct ${used}`);
  }
  const told = `${shownValue(used, row.kind)}, from ${used}`;
  if (used === samplingOff()) return warn(row.setting, `${told}: no run is recorded`, 'set it to 1, or unset it');
  return ok(row.setting, told);
}

/** Whether a complaint is that the value of the setting was refused. */
function isAbout({ variables, complaint }: Row, told: string): boolean {
  if (complaint !== undefined && told.startsWith(complaint)) return true;
  return variables.some((name) => told.replaceAll('`', '').startsWith(`expected ${name} to be `));
}

/** They are no settings of tracing. */
const OF_THE_RECEIVER: readonly EnvironmentName[] = [
  'RUNSPAN_STORE',
  'RUNSPAN_RECEIVER_KEY',
  'RUNSPAN_RECEIVER_WRITE_KEY',
];

/** Variables that look like ours and that nobody reads. */
function unknownVariables(): Finding[] {
  const known: readonly string[] = [...ROWS.flatMap(({ variables }) => variables), ...OF_THE_RECEIVER];
  return variablesWith('RUNSPAN_')
    .filter((name) => !known.includes(name))
    .map((name) => warn(name, 'is not read', 'correct its name; docs/configuration.md lists all that are'));
}

/** The three of a service come from one family: those of the other are not even looked at. */
function sourceOfService(): 'RUNSPAN_' | 'LANGSMITH_' | 'none' {
  if (usesLangsmithService()) return 'LANGSMITH_';
  const own: readonly EnvironmentName[] = ['RUNSPAN_ENDPOINT', 'RUNSPAN_API_KEY', 'RUNSPAN_WORKSPACE_ID'];
  return own.some((name) => env(name) !== undefined) ? 'RUNSPAN_' : 'none';
}

function reasonAgainst(name: EnvironmentName): string {
  if (name.startsWith('RUNSPAN_')) return 'it is not read';
  return sourceOfService() === 'none'
    ? 'neither LANGSMITH_TRACING nor LANGCHAIN_TRACING_V2 is true'
    : 'one of endpoint, key and workspace has a variable of RUNSPAN_, so these are left alone';
}

function shownValue(name: EnvironmentName, kind: Kind): string {
  const value = env(name) ?? '';
  if (kind === 'address') return addressOf(value) ?? `${hiddenValue(name)}, no http or https address`;
  if (kind === 'secret' || value.length > SHOWN_MAX) return hiddenValue(name);
  return kind === 'word' ? value : JSON.stringify(value);
}

function hiddenValue(name: EnvironmentName): string {
  const { length } = env(name) ?? '';
  return `set (${length} ${length === 1 ? 'character' : 'characters'})`;
}

/** An address without user, password, query and fragment; undefined when it is none. */
export function addressOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url.origin + url.pathname.replace(/\/$/, '') : undefined;
}
