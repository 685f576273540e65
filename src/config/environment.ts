import { diagnostics } from '../base/diagnostics.ts';
import { ignoreErrors } from '../base/guard.ts';
import { environment } from '../platform/node.ts';
import { isObject, withoutPrototype } from './checker.ts';
import type { Tuning } from './limits.ts';
import { SETTINGS, type SettingVariable } from './settings.ts';

/** runspan's own environment variables that no setting has. */
const OTHERS = [
  'RUNSPAN_DEV',
  'RUNSPAN_INSTRUMENTATIONS',
  'RUNSPAN_REPLAY',
  'RUNSPAN_STORE',
  'RUNSPAN_RECEIVER_KEY',
  'RUNSPAN_CONTROL_PLANE_URL',
  'RUNSPAN_CONTROL_PLANE_KEY',
] as const;

export const OWN_VARIABLES: readonly string[] = [
  ...Object.values(SETTINGS).flatMap(({ variables }) => variables.filter((name) => name.startsWith('RUNSPAN_'))),
  ...OTHERS,
];

/** Environment variables that the library reads. See `docs/configuration.md`. */
export type EnvironmentName =
  | 'AWS_LAMBDA_FUNCTION_NAME'
  | 'NODE_EXTRA_CA_CERTS'
  | 'NODE_TLS_REJECT_UNAUTHORIZED'
  | 'VERCEL'
  | SettingVariable
  | (typeof OTHERS)[number]
  | 'OTEL_SERVICE_NAME'
  | 'OTEL_RESOURCE_ATTRIBUTES'
  | `OTEL_EXPORTER_OTLP_${'' | 'TRACES_'}${'ENDPOINT' | 'HEADERS' | 'PROTOCOL'}`
  | `LANGSMITH_${LangsmithName}`
  | `LANGCHAIN_${LangsmithName}`
  | 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'
  | 'ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE'
  | 'TRACELOOP_TRACE_CONTENT'
  | `OPENINFERENCE_HIDE_${'INPUT' | 'OUTPUT'}${'S' | '_MESSAGES' | '_TEXT'}`
  | 'NO_PROXY'
  | 'no_proxy';

/** `LANGSMITH_<name>` takes precedence over `LANGCHAIN_<name>`. */
export type LangsmithName =
  | 'ENDPOINT'
  | 'API_KEY'
  | 'RUNS_ENDPOINTS'
  | 'WORKSPACE_ID'
  | 'PROJECT'
  | 'TRACING'
  | 'TRACING_V2'
  | 'TRACING_SAMPLING_RATE'
  | 'HIDE_INPUTS'
  | 'HIDE_OUTPUTS'
  | 'HIDE_METADATA';

/** Each variable turns tracing in LangSmith's SDK on or off. LangChain uses the same SDK. */
export const LANGSMITH_TRACING: readonly EnvironmentName[] = [
  'LANGSMITH_TRACING',
  'LANGSMITH_TRACING_V2',
  'LANGCHAIN_TRACING_V2',
  'LANGCHAIN_TRACING',
];

export const LANGSMITH_DEFAULT_URL = 'https://api.smith.langchain.com';

export function langsmithEnv(name: LangsmithName): string | undefined {
  return env(`LANGSMITH_${name}`) ?? env(`LANGCHAIN_${name}`);
}

/** Whether the endpoint, API key and workspace come from LangSmith's environment variables. */
export function usesLangsmithService(): boolean {
  return !hasServiceVariable() && (langsmithEnv('TRACING_V2') === 'true' || langsmithEnv('TRACING') === 'true');
}

/** Whether a `RUNSPAN_` variable sets the endpoint, the API key or the workspace. */
export function hasServiceVariable(): boolean {
  return (env('RUNSPAN_ENDPOINT') ?? env('RUNSPAN_API_KEY') ?? env('RUNSPAN_WORKSPACE_ID')) !== undefined;
}

export function env(name: EnvironmentName): string | undefined {
  return environment()[name]?.trim() || undefined;
}

declare const jest: unknown;

/** Whether this module runs in Jest, which does not allow modules to be loaded after a test file has ended. */
export const isJest: boolean = typeof jest !== 'undefined';

/** Returns the unmodified value of an environment variable that was named on the command line. */
export function variable(name: string): string | undefined {
  return environment()[name];
}

export function variablesWith(prefix: string): string[] {
  return Object.keys(environment()).filter((name) => name.startsWith(prefix));
}

/** Returns all variables that configure an exporter, as text to compare. The text contains API keys. */
export function exporterVariables(): string {
  const isRead = /^(?:RUNSPAN|LANGSMITH|LANGCHAIN|OTEL)_|_proxy$/i;
  return JSON.stringify(Object.entries(environment()).filter(([name]) => isRead.test(name)));
}

/** Returns the environment variables for a child process. Variables set to `undefined` are omitted. */
export function environmentWith(variables: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  return { ...environment(), ...variables };
}

/** What `runspan dev`, `runspan test` and runspan's own tests hand to the programs that they start. */
export interface DevEnv {
  /** Id that is sent in the header `x-runspan-program`, by which the receiver finds the runs of a command. */
  readonly program?: string;
  /** Whether requests and responses of model calls are attached to their runs. */
  readonly exchanges?: boolean;
  /** Whether the bodies of incoming HTTP requests are attached to their runs. */
  readonly recordBody?: boolean;
  /** Replaces the default of `limits.startDelayMs`. */
  readonly startDelayMs?: number;
  /** File to which `runSet` appends the results of its cases. */
  readonly setReport?: string;
  /** Whether `runSet` runs all examples, and sends their model calls. */
  readonly setLive?: boolean;
  /** Limits of the programs that runspan's own tests start. */
  readonly limits?: Partial<Tuning>;
}

/** Returns the values of `RUNSPAN_DEV`. Another value than a JSON object is logged and ignored. */
export function devEnv(): DevEnv {
  const text = env('RUNSPAN_DEV');
  const given: unknown = text === undefined ? {} : ignoreErrors(() => JSON.parse(text));
  if (!isObject(given)) diagnostics.warnOnce('RUNSPAN_DEV', 'configuration: RUNSPAN_DEV is no JSON object.');
  return withoutPrototype(isObject(given) ? given : {});
}

/** Returns `RUNSPAN_DEV` for a child process. The values of this process precede `defaults`, and follow `settings`. */
export function devVariable(settings: DevEnv, defaults: DevEnv = {}): { readonly RUNSPAN_DEV: string } {
  return { RUNSPAN_DEV: JSON.stringify({ ...defaults, ...devEnv(), ...settings }) };
}
