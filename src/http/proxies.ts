import { diagnostics } from '../base/diagnostics.ts';
import { type EnvironmentName, env } from '../base/env.ts';
import { isLoopback } from '../base/options.ts';

/** A proxy, and the variable that names it. */
export interface NamedProxy {
  readonly address: string;
  readonly variable: EnvironmentName;
}

/** What the environment says of proxies. */
export interface Proxies {
  /** For endpoints of plain HTTP, and for others as well where they have none of their own. */
  readonly http: NamedProxy | undefined;
  readonly https: NamedProxy | undefined;
  /** Hosts that are reached without one, as in `NO_PROXY`. */
  readonly except: string;
}

/** Why an endpoint is reached without a proxy. */
export type NoProxy = 'none is named' | 'this machine' | 'an exception';

/**
 * Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, in lower case first, as curl does. Undefined when there is no proxy. An
 * address that cannot be used is told in one line, without the address: it may hold credentials.
 */
export function environmentProxies(): Proxies | undefined {
  const http = proxyOf('http_proxy', 'HTTP_PROXY');
  const https = proxyOf('https_proxy', 'HTTPS_PROXY');
  if (http === undefined && https === undefined) return undefined;
  return { http, https, except: env('no_proxy') ?? env('NO_PROXY') ?? '' };
}

/** The proxy through which an endpoint is reached, or why there is none. */
export function proxyFor(endpoint: URL, proxies: Proxies | undefined): NamedProxy | NoProxy {
  const { http, https } = proxies ?? {};
  const named = endpoint.protocol === 'https:' ? (https ?? http) : http;
  if (proxies === undefined || named === undefined) return 'none is named';
  if (isLoopback(endpoint.hostname)) return 'this machine';
  return isException(endpoint, proxies.except) ? 'an exception' : named;
}

/** By the rule of undici (lib/dispatcher/env-http-proxy-agent.js): names of hosts with all below them, or `*` alone. */
function isException({ hostname, port, protocol }: URL, except: string): boolean {
  if (except === '*') return true;
  const portAsked = port || (protocol === 'https:' ? '443' : '80');
  return except.split(/[,\s]+/).some((entry) => {
    const [, host = entry, portMeant = portAsked] = /^(.+):(\d+)$/.exec(entry) ?? [];
    const name = host.replace(/^\*?\./, '').toLowerCase();
    return entry !== '' && Number(portMeant) === Number(portAsked) && `.${hostname}`.endsWith(`.${name}`);
  });
}

function proxyOf(...names: EnvironmentName[]): NamedProxy | undefined {
  const variable = names.find((candidate) => env(candidate) !== undefined);
  const text = variable === undefined ? undefined : env(variable);
  if (variable === undefined || text === undefined) return undefined;
  const address = text.includes('://') ? text : `http://${text}`;
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return { address, variable };
  diagnostics.warnOnce(`proxy ${variable}`, `configuration: ${variable} is no http or https address; it is left out.`);
  return undefined;
}
