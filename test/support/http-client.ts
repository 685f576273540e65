import { HttpClient } from '#src/http/client.ts';

export function clientOf(url: string, requestTimeoutMs = 5_000): HttpClient {
  return new HttpClient({ endpoint: new URL(url), headers: {}, connectTimeoutMs: 1_000, requestTimeoutMs });
}
