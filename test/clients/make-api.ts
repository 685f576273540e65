import { onTestFinished } from 'vitest';
import { Api, type ApiOptions } from '#src/clients/api.ts';
import type { Call } from '#src/clients/endpoint.ts';

export const GET: Call = { name: 'things.get', method: 'GET', path: '/things', response: 'any' };
export const POST: Call = { name: 'things.create', method: 'POST', path: '/things', body: { a: 1 }, response: 'any' };

class TestApi extends Api {
  async json(call: Call): Promise<unknown> {
    return (await this.send<unknown>(call)).data;
  }
}

/** Returns a sender for a test server. It is closed when the test has finished. */
export function makeApi(url: string, options: Partial<ApiOptions> = {}): TestApi {
  const api = new TestApi({ url: new URL(url), timeoutMs: 20_000, ...options });
  onTestFinished(() => api.close());
  return api;
}

export async function thrownBy<T = Error & Record<string, unknown>>(call: PromiseLike<unknown>): Promise<T> {
  try {
    await call;
  } catch (thrown) {
    return thrown as T;
  }
  throw new Error('expected the call to reject');
}
