import { diagnostics } from '../base/diagnostics.ts';
import { ignoreErrors } from '../base/guard.ts';
import { kindOf, safeText } from '../base/text.ts';
import { SetupError } from '../http/errors.ts';
import { failureOf } from '../http/failure.ts';
import type { HeadersFunction, HttpHeaders, Progress } from '../http/transport.ts';
import { SecretNames } from '../payload/redaction/names.ts';
import { secretPatterns } from '../payload/redaction/patterns.ts';
import { types } from '../platform/node.ts';
import { withoutTracing } from '../platform/suppress-tracing.ts';
import { untraced } from '../run/context/current.ts';
import { endpointProblem, isHeaderKey, isLoopback, KEY_CHARACTERS_MAX, parseFlag, shownAddress } from './checker.ts';
import { devEnv, env, LANGSMITH_DEFAULT_URL, langsmithEnv, usesLangsmithService } from './environment.ts';
import { type RunsEndpoint, runsEndpoints } from './runs-endpoints.ts';
import { complain, flag } from './variables.ts';

/** Headers that only runspan or undici may set. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'content-type', 'content-encoding', 'transfer-encoding', 'connection'],
  ...['keep-alive', 'expect', 'upgrade', 'te', 'accept-encoding', 'user-agent'],
]);

/** HTTP headers, as an object, `Headers`, a `Map` or a list of pairs. */
export type HeaderFields = Readonly<Record<string, string>> | Iterable<readonly [name: string, value: string]>;

export interface ServiceOptions {
  readonly endpoint?: string;
  readonly apiKey?: string | (() => unknown) | undefined;
  readonly workspaceId?: string;
  readonly headers?: HeaderFields | (() => unknown) | undefined;
  readonly allowInsecure?: unknown;
}

export interface Service {
  readonly endpoint: URL;
  /** The headers known at startup. Headers returned by a function are not included. */
  readonly headers: HttpHeaders;
  /** The headers for each request. A function if the `apiKey` or `headers` option is a function. */
  readonly requestHeaders: HttpHeaders | HeadersFunction;
  /** The services in `LANGSMITH_RUNS_ENDPOINTS`, of which this is the first. */
  readonly endpoints?: readonly RunsEndpoint[] | undefined;
}

/**
 * Returns the service, or undefined if tracing is off. Invalid options are logged. `hasRoutes` is false with OTLP, where the
 * endpoint is the whole URL of the request.
 */
export function serviceOf(options: ServiceOptions, isForProcess = true, hasRoutes = true): Service | undefined {
  for (const name of ['endpoint', 'apiKey', 'workspaceId'] as const) {
    const value: unknown = options[name];
    if (value === undefined || typeof value === 'string' || (name === 'apiKey' && typeof value === 'function'))
      continue;
    const endpoint = originOf(options.endpoint ?? env('RUNSPAN_ENDPOINT'));
    complain(`expected \`${name}\` to be a string, so tracing to ${endpoint} is off`, name);
    return undefined;
  }
  const { endpoint: address, apiKey, workspaceId, endpoints } = resolveAddress(options, isForProcess);
  const wish = address === undefined ? wishIn(apiKey, workspaceId) : undefined;
  if (wish !== undefined) {
    complain(`tracing is off, because ${wish} is set without an endpoint; set RUNSPAN_ENDPOINT or \`endpoint\``);
  }
  const endpoint = address === undefined ? undefined : parseEndpoint(address, hasRoutes);
  if (endpoint === undefined) return undefined;
  const { origin } = endpoint;
  if (typeof apiKey === 'string' && !isHeaderKey(apiKey)) {
    const isLong = apiKey.length > KEY_CHARACTERS_MAX;
    complain(
      isLong
        ? `the API key has more than 8192 characters, so tracing to ${origin} is off`
        : `the API key has characters that a header cannot contain, so tracing to ${origin} is off; copy the key again`,
      'apiKey',
    );
    return undefined;
  }
  if (endpoint.protocol === 'https:' && env('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    complain(
      'NODE_TLS_REJECT_UNAUTHORIZED is 0, so any server can impersonate the service; use NODE_EXTRA_CA_CERTS instead',
    );
  }
  const isConfidential =
    endpoint.protocol === 'https:' ||
    isLoopback(endpoint.hostname) ||
    flag('allowInsecure', options.allowInsecure, false);
  if (apiKey !== undefined && !isConfidential) {
    complain(`the API key is not sent to ${origin} over plain HTTP; use https, or set \`allowInsecure\``);
  }
  const sent = { apiKey: isConfidential ? apiKey : undefined, headers: options.headers, origin, isConfidential };
  const custom = typeof sent.headers === 'function' ? {} : customHeaders(sent.headers, sent);
  const headers: Record<string, string> = { ...custom, 'user-agent': 'runspan' };
  if (workspaceId !== undefined && isHeaderKey(workspaceId)) headers['x-tenant-id'] = workspaceId;
  else if (workspaceId !== undefined) {
    complain('the workspace id is ignored, because it has characters that a header cannot contain', 'workspaceId');
  }
  if (typeof sent.apiKey === 'string') headers['x-api-key'] = sent.apiKey;
  const { program } = devEnv();
  if (typeof program === 'string' && isHeaderKey(program) && isSameOrigin(origin, env('RUNSPAN_ENDPOINT') ?? '')) {
    headers['x-runspan-program'] = program;
  }
  conceal([...Object.values(custom), ...(typeof apiKey === 'string' ? [apiKey] : [])]);
  const isFixed = typeof sent.apiKey !== 'function' && typeof sent.headers !== 'function';
  const requestHeaders = isFixed ? headers : (progress: Progress) => headersNow(headers, sent, progress);
  return { endpoint, headers, requestHeaders, endpoints };
}

/** Returns the setting with which the user wishes to trace. */
function wishIn(apiKey: unknown, workspaceId: unknown): string | undefined {
  if ((apiKey ?? workspaceId) !== undefined) return apiKey === undefined ? 'a workspace' : 'an API key';
  return parseFlag(env('RUNSPAN_TRACING')) === true ? 'RUNSPAN_TRACING' : undefined;
}

/** Redacts values of headers, and credentials without their scheme. */
function conceal(values: readonly string[]): void {
  diagnostics.conceal(values.flatMap((value) => [value, value.replace(/^(?:apikey|basic|bearer|token)\s+/i, '')]));
}

interface HeaderSource extends Pick<ServiceOptions, 'apiKey' | 'headers'> {
  readonly origin: string;
  /** Whether `origin` may receive credentials. */
  readonly isConfidential: boolean;
}

/** Returns the headers for one request. Rejects with a `SetupError` if the `apiKey` or `headers` function fails. */
async function headersNow(fixed: HttpHeaders, source: HeaderSource, progress: Progress): Promise<HttpHeaders> {
  const headers: Record<string, string> = {};
  if (typeof source.headers === 'function') {
    const given = await resultOf('headers', source.headers, progress);
    if (typeof given !== 'object' || given === null) {
      throw new SetupError('`headers` returned something other than header names and values');
    }
    Object.assign(headers, customHeaders(given, source, true));
  }
  const secrets = Object.values(headers);
  Object.assign(headers, fixed);
  if (typeof source.apiKey === 'function') {
    const result = await resultOf('apiKey', source.apiKey, progress);
    const key = typeof result === 'string' ? result.trim() : result;
    if (typeof key !== 'string' || !isHeaderKey(key)) {
      const got = typeof key === 'string' ? `a string of ${key.length} characters` : kindOf(key);
      const expected = `1 to ${KEY_CHARACTERS_MAX} printable ASCII characters`;
      throw new SetupError(`\`apiKey\` returned no usable key: expected ${expected}, got ${got}`);
    }
    headers['x-api-key'] = key;
    secrets.push(key);
  }
  conceal(secrets);
  return headers;
}

async function resultOf(name: string, read: unknown, progress: Progress): Promise<unknown> {
  progress.waitsFor = name;
  try {
    return await withoutTracing(() => untraced(read as () => unknown));
  } catch (thrown) {
    const { code = '' } = failureOf(thrown);
    throw new SetupError(`\`${name}\` threw ${errorName(thrown)}${/^[A-Z_]{1,50}$/.test(code) ? ` (${code})` : ''}`);
  } finally {
    progress.waitsFor = undefined;
  }
}

/** Returns the name of an error. The message is omitted, because it may contain an API key. */
function errorName(thrown: unknown): string {
  const name = safeText(ignoreErrors(() => (thrown as Error).name));
  return /^[A-Za-z]{0,50}(?:Error|Exception)$/.test(name) ? name : 'an error';
}

interface Address {
  readonly endpoint: string | undefined;
  readonly apiKey: ServiceOptions['apiKey'];
  readonly workspaceId: string | undefined;
  /** All services, if there are several. */
  readonly endpoints?: readonly RunsEndpoint[];
}

/**
 * Options take precedence over `RUNSPAN_` variables. LangSmith's variables apply only if neither options nor `RUNSPAN_`
 * variables set the endpoint, API key or workspace. `RUNSPAN_API_KEY` and `RUNSPAN_WORKSPACE_ID` are sent only to the
 * origin of `RUNSPAN_ENDPOINT`.
 */
function resolveAddress(options: ServiceOptions, isForProcess: boolean): Address {
  const endpoint = options.endpoint?.trim() || undefined;
  const apiKey = typeof options.apiKey === 'string' ? options.apiKey.trim() : options.apiKey;
  const workspaceId = options.workspaceId?.trim();
  const hasOption = [endpoint, apiKey, workspaceId].some((value) => value !== undefined);
  if (!hasOption && usesLangsmithService()) {
    const address = langsmithAddress();
    if (address.endpoint === undefined) {
      complain(
        'LangSmith tracing is requested, but neither LANGSMITH_API_KEY nor LANGSMITH_ENDPOINT is set, so tracing is off',
      );
    }
    return address;
  }
  const own = {
    endpoint: env('RUNSPAN_ENDPOINT'),
    apiKey: env('RUNSPAN_API_KEY'),
    workspaceId: env('RUNSPAN_WORKSPACE_ID'),
  };
  const isOwn =
    endpoint === undefined || (own.endpoint === undefined ? isForProcess : isSameOrigin(endpoint, own.endpoint));
  if (!isOwn && apiKey === undefined && own.apiKey !== undefined) {
    const why = own.endpoint === undefined ? 'is unset' : 'has another origin';
    complain(
      `RUNSPAN_API_KEY is not sent to ${originOf(endpoint)}, because RUNSPAN_ENDPOINT ${why}; set \`apiKey\` together with \`endpoint\``,
    );
  }
  return {
    endpoint: endpoint ?? own.endpoint,
    // An empty `apiKey` option overrides `RUNSPAN_API_KEY`, and no key is sent.
    apiKey: (apiKey ?? (isOwn ? own.apiKey : undefined)) || undefined,
    workspaceId: (workspaceId ?? (isOwn ? own.workspaceId : undefined)) || undefined,
  };
}

/** Returns the service that LangSmith's variables name, also if they do not turn tracing on. */
export function langsmithAddress(): Address & { readonly apiKey: string | undefined } {
  const [endpoint, apiKey, workspaceId] = (['ENDPOINT', 'API_KEY', 'WORKSPACE_ID'] as const).map(langsmithEnv);
  const endpoints = runsEndpoints();
  const [first] = endpoints;
  if (first === undefined) return { endpoint: endpoint ?? (apiKey && LANGSMITH_DEFAULT_URL), apiKey, workspaceId };
  if (endpoint !== undefined)
    complain('LANGSMITH_RUNS_ENDPOINTS is set, so LANGSMITH_ENDPOINT is not used', 'endpoint');
  return { endpoint: first.apiUrl, apiKey: first.apiKey || undefined, workspaceId, endpoints };
}

/** Returns the origin of a URL. The path is omitted, because it may contain a secret. */
function originOf(address: unknown): string {
  return typeof address === 'string' && URL.canParse(address) ? new URL(address).origin : 'the endpoint';
}

export function isSameOrigin(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin;
}

/** The routes of runs, which users copy from the documentation of a service. */
const ROUTES = /\/runs(?:\/multipart)?\/*$/;

function parseEndpoint(text: string, hasRoutes: boolean): URL | undefined {
  const problem = endpointProblem(text);
  if (problem !== undefined) {
    complain(`the endpoint ${problem}, so tracing is off; expected a URL such as http://127.0.0.1:4777`, 'endpoint');
    return undefined;
  }
  const url = new URL(text);
  const path = url.pathname;
  if (hasRoutes) url.pathname = path.replace(ROUTES, '');
  if (url.pathname !== path) {
    complain(
      `the endpoint ends in the route of a request, which runspan appends itself; ${shownAddress(url)} is used`,
      'endpoint',
    );
  }
  return url;
}

const SETTING_HEADERS: ReadonlyMap<string, string> = new Map(
  Object.entries({ 'x-api-key': 'apiKey', 'x-tenant-id': 'workspaceId' }),
);

/** Returns the headers that may be sent, and logs the others. Throws if a function returned an invalid credential. */
function customHeaders(given: unknown, { origin, isConfidential }: HeaderSource, isResult = false) {
  const headers: Record<string, string> = {};
  for (const pair of pairsOf(given)) {
    const [name, value]: unknown[] = Array.isArray(pair) ? pair : [];
    if (typeof name !== 'string') {
      complain('expected `headers` to be names and values; the option is ignored');
      continue;
    }
    const lower = name.toLowerCase();
    const isUsable = /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value);
    const option = SETTING_HEADERS.get(lower);
    const isSecret = isCredential(lower, safeText(value));
    if (option !== undefined) complain(`header \`${lower}\` is not sent to ${origin}; use \`${option}\``);
    else if (OWN_HEADERS.has(lower)) complain(`header \`${lower}\` cannot be set and is ignored`);
    else if (isSecret && !isConfidential) {
      complain(`header \`${lower}\` is not sent to ${origin} over plain HTTP; use https, or set \`allowInsecure\``);
    } else if (isSecret && isResult && !(isUsable && value.trim() !== '')) {
      throw new SetupError(`\`headers\` returned no usable \`${lower}\`: expected printable ASCII characters`);
    } else if (!isUsable) complain(`header \`${lower}\` cannot be set and is ignored`);
    else headers[lower] = value;
  }
  return headers;
}

const OWN_CREDENTIAL_NAMES = ['auth', 'key', 'access key', 'jwt', 'signature', 'bearer', 'pass'];
const CREDENTIAL_VALUES: readonly RegExp[] = [/^(?:basic|bearer|digest|negotiate)\s/i, ...secretPatterns];

/** Created at the first use, because `SecretNames` compiles patterns with Unicode classes. */
let credentialNames: SecretNames | undefined;

function isCredential(name: string, value: string): boolean {
  credentialNames ??= new SecretNames(OWN_CREDENTIAL_NAMES, true);
  return credentialNames.kindOf(name) !== undefined || CREDENTIAL_VALUES.some((pattern) => pattern.test(value));
}

/** Returns the values of all headers that look like credentials, or undefined if there are none. */
export function credentialsIn(headers: HttpHeaders): string | undefined {
  const values = Object.entries(headers).flatMap(([name, value]) => (isCredential(name, value) ? value.trim() : []));
  return values.sort().join('\n') || undefined;
}

/** Returns headers as name-value pairs. If `given` is invalid, it is the only pair, which the caller logs. */
function pairsOf(given: unknown): Iterable<unknown> {
  if (given === undefined) return [];
  if (typeof given !== 'object' || given === null || types.isPromise(given)) return [given];
  return Symbol.iterator in given ? (given as Iterable<unknown>) : Object.entries(given);
}

/** Whether environment variables turn tracing on. The endpoint and API key are not validated, and nothing is logged. */
export function isOnByEnvironment(): boolean {
  const hasService = env('RUNSPAN_ENDPOINT') !== undefined || usesLangsmithService();
  return hasService && parseFlag(env('RUNSPAN_TRACING')) !== false;
}
