import { diagnostics } from '../base/diagnostics.ts';
import { type EnvironmentName, env } from '../base/env.ts';
import { flag } from '../export/service-settings.ts';
import { resolveSettings, type Settings } from '../export/settings.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** How the value of a variable is shown. */
type Kind = 'secret' | 'address' | 'word' | 'text';

/** A setting with the variables that it comes from, the first that is set; those of `service` belong together. */
interface Row {
  readonly setting: string;
  readonly kind: Kind;
  readonly variables: readonly EnvironmentName[];
  readonly otherwise: string;
  readonly group?: 'service';
}

const ROWS: readonly Row[] = [
  {
    setting: 'endpoint',
    kind: 'address',
    variables: ['RUNSPAN_ENDPOINT', 'LANGSMITH_ENDPOINT'],
    otherwise: 'none',
    group: 'service',
  },
  {
    setting: 'apiKey',
    kind: 'secret',
    variables: ['RUNSPAN_API_KEY', 'LANGSMITH_API_KEY'],
    otherwise: 'none',
    group: 'service',
  },
  {
    setting: 'workspaceId',
    kind: 'secret',
    variables: ['RUNSPAN_WORKSPACE_ID', 'LANGSMITH_WORKSPACE_ID'],
    otherwise: 'none',
    group: 'service',
  },
  { setting: 'project', kind: 'text', variables: ['RUNSPAN_PROJECT', 'LANGSMITH_PROJECT'], otherwise: '"default"' },
  { setting: 'tracing', kind: 'word', variables: ['RUNSPAN_TRACING'], otherwise: 'true' },
  {
    setting: 'sampleRate',
    kind: 'word',
    variables: ['RUNSPAN_SAMPLE_RATE', 'LANGSMITH_TRACING_SAMPLING_RATE'],
    otherwise: '1',
  },
  {
    setting: 'hideInputs',
    kind: 'word',
    variables: ['RUNSPAN_HIDE_INPUTS', 'LANGSMITH_HIDE_INPUTS'],
    otherwise: 'false',
  },
  {
    setting: 'hideOutputs',
    kind: 'word',
    variables: ['RUNSPAN_HIDE_OUTPUTS', 'LANGSMITH_HIDE_OUTPUTS'],
    otherwise: 'false',
  },
  { setting: 'allowInsecure', kind: 'word', variables: ['RUNSPAN_ALLOW_INSECURE'], otherwise: 'false' },
  { setting: 'durability', kind: 'word', variables: ['RUNSPAN_DURABILITY'], otherwise: 'memory' },
  { setting: 'spoolDir', kind: 'text', variables: ['RUNSPAN_SPOOL_DIR'], otherwise: 'in the home folder' },
  { setting: 'log', kind: 'word', variables: ['RUNSPAN_LOG'], otherwise: 'warn' },
];

/** Characters of a text that are shown. */
const SHOWN_MAX = 100;

/** Variables whose values are told nowhere. */
const SECRET: readonly EnvironmentName[] = ROWS.filter(({ kind }) => kind === 'secret').flatMap(
  ({ variables }) => variables,
);

/** The secrets of the environment, so that no message repeats one. */
export function secretsOfEnvironment(): string[] {
  return SECRET.flatMap((name) => env(name) ?? []);
}

/** What settings the environment gives, each with where it comes from, and the settings that follow from it. */
export function settingFindings(): { readonly findings: readonly Finding[]; readonly settings: Settings | undefined } {
  const complaints: string[] = [];
  // As if tracing were on: what is turned off may be looked into as well.
  const settings = resolveSettings({
    tracing: true,
    log: (level, message) => void (level === 'debug' || complaints.push(message)),
  });
  const findings = ROWS.flatMap(findingsOf);
  for (const complaint of complaints) findings.push(warn('settings', complaint, 'correct the variable that it names'));
  if (!flag('tracing', undefined, ['RUNSPAN_TRACING'], true)) {
    findings.push(
      warn('tracing', 'turned off by RUNSPAN_TRACING', 'unset it to trace; what follows is as if it were on'),
    );
  }
  if (settings === undefined) {
    findings.push(
      fail('tracing', 'off: there is no usable endpoint', 'set RUNSPAN_ENDPOINT to the address of the service'),
    );
  }
  // The log stays ours: what is checked later complains to nobody else.
  diagnostics.setLog('silent');
  return { findings, settings };
}

function findingsOf({ setting, kind, variables, otherwise, group }: Row): Finding[] {
  const present = variables.filter((name) => env(name) !== undefined);
  const isUsed = (name: EnvironmentName): boolean =>
    group === undefined ? name === present[0] : name.startsWith(sourceOfService());
  const used = present.find(isUsed);
  const findings = [
    used === undefined
      ? ok(setting, `${otherwise}, the default`)
      : ok(setting, `${shownValue(used, kind)}, from ${used}`),
  ];
  for (const name of present) {
    if (name === used) continue;
    const why = group === undefined ? `${present[0]} comes first` : reasonAgainst(name);
    findings.push(ok(name, `${shownValue(name, kind)}, not used: ${why}`));
  }
  return findings;
}

/** The three of a service come from one family: those of the other are not even looked at. */
function sourceOfService(): 'RUNSPAN_' | 'LANGSMITH_' | 'none' {
  const own: readonly EnvironmentName[] = ['RUNSPAN_ENDPOINT', 'RUNSPAN_API_KEY', 'RUNSPAN_WORKSPACE_ID'];
  if (own.some((name) => env(name) !== undefined)) return 'RUNSPAN_';
  return env('LANGSMITH_TRACING') === 'true' ? 'LANGSMITH_' : 'none';
}

function reasonAgainst(name: EnvironmentName): string {
  if (name.startsWith('RUNSPAN_')) return 'it is not read';
  return sourceOfService() === 'none'
    ? 'LANGSMITH_TRACING is not true'
    : 'one of endpoint, key and workspace has a variable of RUNSPAN_, so these are left alone';
}

function shownValue(name: EnvironmentName, kind: Kind): string {
  const value = env(name) ?? '';
  const hidden = `set (${value.length} ${value.length === 1 ? 'character' : 'characters'})`;
  if (kind === 'address') return addressOf(value) ?? `${hidden}, no http or https address`;
  // What is no word or number may have come into the wrong variable.
  if (kind === 'word') return /^([a-z-]{1,12}|\d*\.?\d{1,6})$/i.test(value) ? value : hidden;
  if (kind === 'secret' || value.length > SHOWN_MAX) return hidden;
  return JSON.stringify(value);
}

/** An address without user, password, query and fragment; undefined when it is none. */
export function addressOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url.origin + url.pathname.replace(/\/$/, '') : undefined;
}
