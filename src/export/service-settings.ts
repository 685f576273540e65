import { types } from 'node:util';
import { diagnostics } from '../base/diagnostics.ts';
import { type EnvironmentName, env } from '../base/env.ts';
import { isLoopback } from '../base/loopback.ts';
import { safeText } from '../base/text.ts';
import type { ConfigureOptions, Settings } from './settings.ts';

/** Printable ASCII without spaces: what a header can carry and a key consists of. */
const KEY = /^[\x21-\x7e]{1,512}$/;

/** Names that requests set themselves, or that connections do. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'expect',
  'upgrade',
  'te',
  'accept-encoding',
  'user-agent',
  'x-api-key',
  'x-tenant-id',
]);

/** Where to send and with what headers; undefined, after one line that says why, when tracing cannot be on. */
export function serviceOf(options: ConfigureOptions): Pick<Settings, 'endpoint' | 'headers'> | undefined {
  for (const name of ['endpoint', 'apiKey', 'workspaceId'] as const) {
    if (options[name] === undefined || typeof options[name] === 'string') continue;
    complain(`expected \`${name}\` to be text, so tracing is off`);
    return undefined;
  }
  const address = addressOf(options);
  if (address.endpoint === undefined) {
    if (address.apiKey !== undefined) {
      complain('there is an API key and no endpoint, so tracing is off; set RUNSPAN_ENDPOINT or `endpoint`');
    }
    return undefined;
  }
  const endpoint = endpointOf(address.endpoint);
  if (endpoint === undefined) return undefined;
  const { apiKey, workspaceId } = address;
  if (apiKey !== undefined && !KEY.test(apiKey)) {
    complain('the API key has characters that a header cannot carry, so tracing is off; copy it again');
    return undefined;
  }
  const isWorkspaceUsable = workspaceId === undefined || KEY.test(workspaceId);
  if (!isWorkspaceUsable) complain('the workspace id has characters that a header cannot carry; left out');
  const custom = customHeaders(options.headers);
  diagnostics.conceal([...Object.values(custom), ...(apiKey === undefined ? [] : [apiKey])]);
  if (endpoint.protocol === 'https:' && env('NODE_TLS_REJECT_UNAUTHORIZED') === '0') {
    complain('NODE_TLS_REJECT_UNAUTHORIZED is 0, so anybody may pose as the service; trust it by NODE_EXTRA_CA_CERTS');
  }
  const headers: Record<string, string> = { ...custom, 'user-agent': 'runspan' };
  if (workspaceId !== undefined && isWorkspaceUsable) headers['x-tenant-id'] = workspaceId;
  if (apiKey !== undefined && mayCarryKey(endpoint, options)) headers['x-api-key'] = apiKey;
  return { endpoint, headers };
}

type Address = { [Name in 'endpoint' | 'apiKey' | 'workspaceId']: string | undefined };

/**
 * The three that belong together. Those of `LANGSMITH_` are read only when none of ours is set and that tracing is on,
 * so that no key travels to an endpoint that it was not given for.
 */
function addressOf(options: ConfigureOptions): Address {
  const own: Address = {
    endpoint: options.endpoint?.trim() || env('RUNSPAN_ENDPOINT'),
    apiKey: options.apiKey?.trim() || env('RUNSPAN_API_KEY'),
    workspaceId: options.workspaceId?.trim() || env('RUNSPAN_WORKSPACE_ID'),
  };
  if (Object.values(own).some((value) => value !== undefined)) return own;
  if (env('LANGSMITH_TRACING') !== 'true') return own;
  return {
    endpoint: env('LANGSMITH_ENDPOINT'),
    apiKey: env('LANGSMITH_API_KEY'),
    workspaceId: env('LANGSMITH_WORKSPACE_ID'),
  };
}

function endpointOf(text: string): URL | undefined {
  let problem = 'is no http or https address';
  try {
    const url = new URL(text);
    if (url.username !== '' || url.password !== '') problem = 'holds a user or password';
    else if (url.search !== '' || url.hash !== '') problem = 'has a query or fragment';
    else if (url.protocol === 'http:' || url.protocol === 'https:') return url;
  } catch {
    // No address at all.
  }
  complain(`the endpoint ${problem}, so tracing is off; expected an address such as http://127.0.0.1:4777`);
  return undefined;
}

function mayCarryKey(endpoint: URL, options: ConfigureOptions): boolean {
  if (endpoint.protocol === 'https:' || isLoopback(endpoint.hostname)) return true;
  if (flag('allowInsecure', options.allowInsecure, ['RUNSPAN_ALLOW_INSECURE'], false)) return true;
  complain('the API key is not sent over plain HTTP to another host; use https, or set `allowInsecure`');
  return false;
}

function customHeaders(given: ConfigureOptions['headers']): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of pairsOf(given)) {
    const [name, value]: unknown[] = Array.isArray(pair) ? pair : [];
    if (typeof name !== 'string') {
      complain('expected `headers` to be names and values; left out');
      continue;
    }
    const lower = name.toLowerCase();
    const isUsable = /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value);
    if (isUsable && !OWN_HEADERS.has(lower)) headers[lower] = value;
    else complain(`header \`${lower}\` cannot be set; left out`);
  }
  return headers;
}

/** What `headers` holds, in whatever form; what is none of them is no pair. */
function pairsOf(given: unknown): Iterable<unknown> {
  if (given === undefined) return [];
  if (typeof given !== 'object' || given === null || types.isPromise(given)) return [given];
  return Symbol.iterator in given ? (given as Iterable<unknown>) : Object.entries(given);
}

const ON: readonly string[] = ['true', '1', 'yes', 'on'];
const OFF: readonly string[] = ['false', '0', 'no', 'off'];

/**
 * An option that is true or false, else the first of the variables that is set, else the default. `misread` is what a value
 * counts as that is neither. The words of a variable count in an option as well, with a line: it should not hold them.
 */
export function flag(
  name: string,
  option: unknown,
  variables: readonly EnvironmentName[],
  otherwise: boolean,
  misread: boolean = otherwise,
): boolean {
  if (typeof option === 'boolean') return option;
  if (option !== undefined) {
    const meant = meaningOf(option) ?? misread;
    complain(`expected \`${name}\` to be true or false; it is taken as ${meant}`);
    return meant;
  }
  const variable = variables.find((candidate) => env(candidate) !== undefined);
  if (variable === undefined) return otherwise;
  const meant = meaningOf(env(variable));
  if (meant === undefined) complain(`expected ${variable} to be true or false; it is taken as ${misread}`);
  return meant ?? misread;
}

function meaningOf(value: unknown): boolean | undefined {
  const text = safeText(value).toLowerCase();
  if (ON.includes(text)) return true;
  return OFF.includes(text) ? false : undefined;
}

/** One line for a setting that does not hold. It never repeats the value, which may be a secret. */
export function complain(problem: string): void {
  diagnostics.warnOnce(`configuration ${problem}`, `configuration: ${problem}.`);
}
