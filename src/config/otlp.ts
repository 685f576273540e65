import { type EnvironmentName, env } from './environment.ts';
import type { ServiceOptions } from './service.ts';
import { complain } from './variables.ts';

/**
 * How runs are sent: `runs` to a service with the interface of LangSmith, or as OpenTelemetry spans, in protobuf
 * (`otlp`) or JSON (`otlp-json`).
 */
export type Protocol = 'runs' | 'otlp' | 'otlp-json';

export const PROTOCOLS: readonly unknown[] = ['runs', 'otlp', 'otlp-json'] satisfies Protocol[];

/** Settings for spans that are sent with OTLP over HTTP. */
export interface OtlpSettings {
  readonly format: 'protobuf' | 'json';
  /** Attributes of the resource, from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly resource: Readonly<Record<string, string>>;
}

/** The route for spans. It is added to an endpoint without a path. */
const ROUTE = '/v1/traces';

const DEFAULT_ENDPOINT = 'http://localhost:4318';

/** `OTEL_EXPORTER_OTLP_TRACES_<name>` takes precedence over `OTEL_EXPORTER_OTLP_<name>`. */
function otlpEnv(name: 'HEADERS' | 'PROTOCOL'): string | undefined {
  return env(`OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? env(`OTEL_EXPORTER_OTLP_${name}`);
}

export function otlpSettings(protocol: Protocol): OtlpSettings | undefined {
  if (protocol === 'runs') return undefined;
  const wanted = otlpEnv('PROTOCOL');
  const isJson = protocol === 'otlp-json' || wanted === 'http/json';
  if (wanted !== undefined && !/^http\/(?:protobuf|json)$/.test(wanted)) {
    complain(`OTEL_EXPORTER_OTLP_PROTOCOL is ${JSON.stringify(wanted)}; expected http/protobuf or http/json`);
  }
  return { format: isJson ? 'json' : 'protobuf', resource: resourceFromEnvironment() };
}

/** Returns the options of a service that takes spans. OpenTelemetry's variables name it if there is no endpoint. */
export function otlpServiceOptions(options: ServiceOptions): ServiceOptions {
  const given = options.endpoint ?? env('RUNSPAN_ENDPOINT');
  if (given !== undefined) return { ...options, endpoint: withRoute(given) };
  const own = env('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const base = env('OTEL_EXPORTER_OTLP_ENDPOINT') ?? DEFAULT_ENDPOINT;
  const named = Object.entries(entriesOf(otlpEnv('HEADERS'), 'OTEL_EXPORTER_OTLP_HEADERS'));
  const lower = Object.fromEntries(named.map(([name, value]) => [name.toLowerCase(), value]));
  const { 'x-api-key': apiKey = '', 'x-tenant-id': workspaceId = '', ...headers } = lower;
  return {
    ...options,
    endpoint: own ?? base.replace(/\/?$/, ROUTE),
    // runspan's variables for a key and a workspace belong to another service.
    apiKey: options.apiKey ?? apiKey,
    workspaceId: options.workspaceId ?? workspaceId,
    headers: options.headers ?? headers,
  };
}

function withRoute(endpoint: string): string {
  if (!URL.canParse(endpoint)) return endpoint;
  const url = new URL(endpoint);
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return endpoint;
  url.pathname = ROUTE;
  return url.href;
}

/** Returns the attributes of the resource in OpenTelemetry's variables. `OTEL_SERVICE_NAME` takes precedence. */
export function resourceFromEnvironment(): Readonly<Record<string, string>> {
  const name = env('OTEL_SERVICE_NAME');
  const attributes = entriesOf(env('OTEL_RESOURCE_ATTRIBUTES'), 'OTEL_RESOURCE_ATTRIBUTES');
  return { ...attributes, ...(name !== undefined && { 'service.name': name }) };
}

/** Parses `key=value` pairs, separated by commas. Keys and values are percent-encoded. */
function entriesOf(text: string | undefined, variable: EnvironmentName): Record<string, string> {
  const entries: Record<string, string> = {};
  for (const pair of text?.split(',') ?? []) {
    if (pair.trim() === '') continue;
    const [key = '', ...value] = pair.split('=');
    try {
      if (key.trim() === '' || value.length === 0) throw new TypeError('no key');
      entries[decodeURIComponent(key.trim())] = decodeURIComponent(value.join('=').trim());
    } catch {
      // The pair is not shown, because it may contain a secret.
      complain(`expected ${variable} to be key=value pairs, separated by commas; an invalid pair is ignored`);
    }
  }
  return entries;
}
