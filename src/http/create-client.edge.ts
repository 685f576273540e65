import { FetchClient } from './fetch-client.ts';
import type { HttpClientOptions, Transport } from './transport.ts';

// Replaces `create-client.ts` on edge runtimes and in browsers.

export const usesFetch = true;

export const createClient = (options: HttpClientOptions): Transport => new FetchClient(options);
