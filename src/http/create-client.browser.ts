import { FetchClient } from './fetch-client.ts';
import type { HttpClientOptions, Transport } from './transport.ts';

export const createClient = (options: HttpClientOptions): Transport => new FetchClient(options);
