import { diagnostics } from '../base/diagnostics.ts';
import { type EnvironmentName, env } from '../base/env.ts';

/** The proxies that the environment names, as addresses; empty where there is none. */
export interface Proxies {
  /** For endpoints of plain HTTP, and for others as well where they have none of their own. */
  readonly http: string;
  readonly https: string;
  /** Hosts that are reached without one, as in `NO_PROXY`. */
  readonly except: string;
}

/**
 * Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, in lower case first, as curl does. Undefined when there is no proxy. An
 * address that cannot be used is told in one line, without the address: it may hold credentials.
 */
export function environmentProxies(): Proxies | undefined {
  const http = proxyOf('http_proxy', 'HTTP_PROXY');
  const https = proxyOf('https_proxy', 'HTTPS_PROXY');
  if (http === '' && https === '') return undefined;
  return { http, https, except: env('no_proxy') ?? env('NO_PROXY') ?? '' };
}

function proxyOf(...names: EnvironmentName[]): string {
  const name = names.find((candidate) => env(candidate) !== undefined);
  const text = name === undefined ? undefined : env(name);
  if (text === undefined) return '';
  const address = text.includes('://') ? text : `http://${text}`;
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return address;
  diagnostics.warnOnce(`proxy ${name}`, `configuration: ${name} is no http or https address; it is left out.`);
  return '';
}
