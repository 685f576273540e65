import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { environmentWith, variable } from '../../base/env.ts';

/** `runspan/register`, as a URL. It contains no spaces, quotes or backslashes, so `NODE_OPTIONS` needs no quoting. */
const REGISTER: string = new URL('register.js', new URL('../../', import.meta.url)).href;

/** Exit code of Node if `NODE_OPTIONS` contains an unknown option. */
const INVALID_OPTION = 9;

/**
 * Returns the variables that record a command which does not use runspan: its Node processes load `runspan/register`,
 * and its OpenTelemetry exporters send their spans to the receiver.
 */
export async function hookVariables(
  program: string,
  url: string,
  apiKey: string | undefined,
  warn: (line: string) => void,
): Promise<Record<string, string>> {
  const otlp = otlpVariables(url, apiKey);
  // The hook precedes the existing options, because the modules that they load may load an SDK.
  const nodeOptions = `--import=${REGISTER} ${variable('NODE_OPTIONS') ?? ''}`.trim();
  if (await supportsImport(program)) return { ...otlp, NODE_OPTIONS: nodeOptions };
  warn(
    'the Node of the command has no --import, so only what the command traces itself is recorded; use Node 20.19 or later',
  );
  return otlp;
}

/**
 * Returns the standard variables of OpenTelemetry, or none if the user has set an endpoint. The receiver accepts only
 * traces, so metrics and logs are turned off unless the user has set their exporters.
 */
function otlpVariables(url: string, apiKey: string | undefined): Record<string, string> {
  if (variable('OTEL_EXPORTER_OTLP_ENDPOINT') || variable('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')) return {};
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    ...(apiKey !== undefined && { OTEL_EXPORTER_OTLP_HEADERS: `x-api-key=${encodeURIComponent(apiKey)}` }),
    OTEL_METRICS_EXPORTER: variable('OTEL_METRICS_EXPORTER') ?? 'none',
    OTEL_LOGS_EXPORTER: variable('OTEL_LOGS_EXPORTER') ?? 'none',
  };
}

/**
 * Whether Node accepts `--import` in `NODE_OPTIONS`; otherwise each Node process of the command would exit at once.
 * Checks the command if it is `node`, and otherwise the `node` of the `PATH`. A missing `node` changes nothing.
 */
function supportsImport(program: string): Promise<boolean> {
  const node = /^node(\.exe)?$/i.test(basename(program)) ? program : 'node';
  const env = environmentWith({ NODE_OPTIONS: '--import=data:,' });
  return new Promise((resolve) => {
    execFile(node, ['--version'], { env }, (error) => resolve(error?.code !== INVALID_OPTION));
  });
}
