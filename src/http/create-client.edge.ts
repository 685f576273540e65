import { FetchClient } from './fetch-client.ts';
import type { HttpClientOptions, Transport } from './transport.ts';

// Also used in browsers.

export const usesFetch = true;

export const createClient = (options: HttpClientOptions): Transport => new FetchClient(options);
