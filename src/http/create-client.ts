import { HttpClient } from './client.ts';
import { environmentProxies } from './connections.ts';
import { FetchClient } from './fetch-client.ts';
import type { HttpClientOptions, Transport } from './transport.ts';

/** Whether requests are sent with `fetch`. On Bun, undici does not work. Deno implements `fetch` natively. */
export const usesFetch: boolean = 'Bun' in globalThis || 'Deno' in globalThis;

/** Creates a client that uses undici on Node.js and `fetch` on other runtimes. Only undici supports `dispatcher`. */
export function createClient(options: HttpClientOptions): Transport {
  if (options.fetch || (usesFetch && options.dispatcher === undefined)) return new FetchClient(options);
  return new HttpClient('proxies' in options ? options : { ...options, proxies: environmentProxies() });
}
