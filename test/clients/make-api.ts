import { onTestFinished } from 'vitest';
import { Api, type ApiOptions } from '../../src/clients/api.ts';
import type { Call } from '../../src/clients/call.ts';
import { Secrets } from '../../src/clients/secrets.ts';

export const GET: Call = { name: 'things.get', method: 'GET', path: '/things' };
export const POST: Call = { name: 'things.create', method: 'POST', path: '/things', body: { a: 1 } };

/** What sends calls to a test server, until the test has finished. */
export function makeApi(url: string, options: Partial<ApiOptions> = {}): Api {
  const api = new Api({ url: new URL(url), headers: {}, secrets: new Secrets([]), timeoutMs: 20_000, ...options });
  onTestFinished(() => api.close());
  return api;
}

/** What a call rejects with; a call that resolves is a mistake of the test. */
export async function thrownBy(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (thrown) {
    return thrown;
  }
  throw new Error('expected the call to reject');
}
