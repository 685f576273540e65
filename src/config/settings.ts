/** How the value of an environment variable is printed. A `word` is a number or one of a few fixed values. */
export type SettingKind = 'secret' | 'address' | 'word' | 'text';

/** A setting: its environment variables, the first of which takes precedence, how a value is printed, and the default. */
export interface Setting {
  readonly variables: readonly SettingVariable[];
  readonly kind?: SettingKind;
  readonly otherwise?: string;
}

/** `own` follows `RUNSPAN_` in the name of a variable, and `langsmith` follows `LANGSMITH_` or `LANGCHAIN_`. */
const TABLE = {
  endpoint: { own: 'ENDPOINT', langsmith: 'ENDPOINT', kind: 'address', otherwise: 'none' },
  protocol: { own: 'PROTOCOL', kind: 'word', otherwise: 'runs' },
  apiKey: { own: 'API_KEY', langsmith: 'API_KEY', kind: 'secret', otherwise: 'none' },
  workspaceId: { own: 'WORKSPACE_ID', langsmith: 'WORKSPACE_ID', kind: 'secret', otherwise: 'none' },
  project: { own: 'PROJECT', langsmith: 'PROJECT', kind: 'text', otherwise: '"default"' },
  tracing: { own: 'TRACING', kind: 'word', otherwise: 'true' },
  sampleRate: { own: 'SAMPLE_RATE', langsmith: 'TRACING_SAMPLING_RATE', kind: 'word', otherwise: '1' },
  keep: { own: 'KEEP', kind: 'word', otherwise: 'none' },
  hideInputs: { own: 'HIDE_INPUTS', langsmith: 'HIDE_INPUTS', kind: 'word', otherwise: 'false' },
  hideOutputs: { own: 'HIDE_OUTPUTS', langsmith: 'HIDE_OUTPUTS', kind: 'word', otherwise: 'false' },
  propagateTo: { own: 'PROPAGATE_TO', kind: 'text', otherwise: 'none' },
  allowInsecure: { own: 'ALLOW_INSECURE', kind: 'word', otherwise: 'false' },
  durability: { own: 'DURABILITY', kind: 'word', otherwise: 'memory, or spill with runspan/register' },
  spoolDir: { own: 'SPOOL_DIR', kind: 'text', otherwise: 'in the home folder' },
  log: { own: 'LOG', kind: 'word', otherwise: 'warn' },
} as const;

interface Row extends Omit<Setting, 'variables'> {
  readonly own: (typeof TABLE)[keyof typeof TABLE]['own'];
  readonly langsmith?: Extract<(typeof TABLE)[keyof typeof TABLE], { langsmith: string }>['langsmith'];
}

const PROXIES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const;

export type SettingName = keyof typeof TABLE | 'proxy';

export type SettingVariable =
  | `RUNSPAN_${Row['own']}`
  | `${'LANGSMITH' | 'LANGCHAIN'}_${NonNullable<Row['langsmith']>}`
  | (typeof PROXIES)[number];

/** All settings that are read from environment variables. `docs/configuration.md` and `runspan doctor` list this table. */
export const SETTINGS: Readonly<Record<SettingName, Setting>> = Object.fromEntries([
  ...Object.entries<Row>(TABLE).map(([name, { own, langsmith, ...setting }]) => {
    const theirs = langsmith === undefined ? [] : [`LANGSMITH_${langsmith}`, `LANGCHAIN_${langsmith}`];
    return [name, { ...setting, variables: [`RUNSPAN_${own}`, ...theirs] }];
  }),
  ['proxy', { variables: PROXIES }],
]);

/** Settings that are read from variables of one prefix. A mix could send an API key to the wrong service. */
export const SERVICE: readonly SettingName[] = ['endpoint', 'apiKey', 'workspaceId'];
