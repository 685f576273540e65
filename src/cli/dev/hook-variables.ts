import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { environmentWith, variable } from '../../config/environment.ts';
import { variableOf } from '../../config/variables.ts';

/**
 * The URL of `runspan/register`. A URL contains no spaces, quotes or backslashes, so `NODE_OPTIONS` needs no quoting.
 */
const REGISTER: string = new URL('register.js', new URL('../../', import.meta.url)).href;

/** Node's exit code if `NODE_OPTIONS` contains an unknown option. Old versions do not accept `--import` there. */
const INVALID_OPTION = 9;

/**
 * Returns environment variables that trace a command without code changes. Node processes load `runspan/register`.
 * OpenTelemetry exporters send their spans to the receiver.
 */
export async function hookVariables(
  program: string,
  url: string,
  apiKey: string | undefined,
  programId: string,
  warn: (line: string) => void,
): Promise<Record<string, string>> {
  const otlp = otlpVariables(url, apiKey, programId);
  // `runspan/register` must load first, because modules named in the existing options may load an SDK.
  const nodeOptions = `--import=${REGISTER} ${variable('NODE_OPTIONS') ?? ''}`.trim();
  const { code } = await askVersion(program, { NODE_OPTIONS: '--import=data:,' });
  if (code !== INVALID_OPTION) return { ...otlp, NODE_OPTIONS: nodeOptions };
  warn(
    'the command uses a Node version without --import, so model calls are not recorded automatically; use Node 20.19 or later',
  );
  return otlp;
}

/**
 * Returns OpenTelemetry's standard variables, or none if the user has set an OTLP endpoint. The receiver stores no
 * metrics, so they are off unless the user has set their exporter. Log records may contain messages of model calls.
 */
function otlpVariables(url: string, apiKey: string | undefined, programId: string): Record<string, string> {
  if (variable('OTEL_EXPORTER_OTLP_ENDPOINT') || variable('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')) return {};
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_HEADERS: otlpHeaders(apiKey, programId),
    OTEL_METRICS_EXPORTER: variable('OTEL_METRICS_EXPORTER') ?? 'none',
  };
}

/**
 * Adds the API key, the id of the program, and the project if a variable of the user names one, to the user's headers.
 * Otherwise the service name is the project. A header cannot contain all characters that a project can.
 */
export function otlpHeaders(apiKey: string | undefined, programId: string): string {
  const project = variable(variableOf('project') ?? '')?.trim() ?? '';
  const headers = [
    variable('OTEL_EXPORTER_OTLP_HEADERS') ?? '',
    apiKey === undefined ? '' : `x-api-key=${encodeURIComponent(apiKey)}`,
    `x-runspan-program=${programId}`,
    /^[\x20-\x7e]+$/.test(project) ? `langsmith-project=${encodeURIComponent(project)}` : '',
  ];
  return headers.filter((header) => header !== '').join(',');
}

/** Returns the version of Node that runs a command, for example `22.15.0`. Returns undefined if it is not known. */
export async function nodeVersionFor(program: string): Promise<string | undefined> {
  const { stdout } = await askVersion(program, {});
  return /^v(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
}

/** Runs `node --version`. If the command is not `node`, runs the `node` in `PATH`. */
function askVersion(program: string, variables: Record<string, string>): Promise<{ code: unknown; stdout: string }> {
  const node = /^node(\.exe)?$/i.test(basename(program)) ? program : 'node';
  return new Promise((resolve) => {
    execFile(node, ['--version'], { env: environmentWith(variables) }, (error, stdout) =>
      resolve({ code: error?.code, stdout }),
    );
  });
}
