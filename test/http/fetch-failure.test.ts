import { expect, it, vi } from 'vitest';
import { failureOf } from '#src/http/failure.ts';
import { FetchClient } from '#src/http/fetch-client.ts';

const broken = (): ReadableStream<Uint8Array> =>
  new ReadableStream({ pull: (controller) => controller.error(new TypeError('network error')) });

// Node's `fetch` gives a reason for a failure and shows redirects, but the `fetch` of browsers does not.
it.each<[string, () => Promise<unknown>, object]>([
  [
    'a request that failed',
    () => Promise.reject(new TypeError('Failed to fetch')),
    { detail: 'no response arrived, or the connection broke', isLasting: false, mayHaveArrived: true },
  ],
  [
    'a body that broke off',
    async () => new Response(broken()),
    { detail: 'no response arrived, or the connection broke', isLasting: false, mayHaveArrived: true },
  ],
  [
    'a redirect',
    async () => ({ type: 'opaqueredirect', status: 0, headers: new Headers(), body: null }),
    { detail: expect.stringContaining('the service redirects to another URL'), isLasting: true },
  ],
])('explains %s although the browser does not', async (_, fetch, failure) => {
  vi.stubGlobal('fetch', fetch);
  const endpoint = new URL('http://host.test');
  const client = new FetchClient({ endpoint, headers: {}, connectTimeoutMs: 1_000, requestTimeoutMs: 1_000 });
  const read = async (): Promise<void> => {
    const { body } = await client.open({ method: 'GET', path: '/' });
    for await (const _chunk of body);
  };
  const thrown = await read().catch((error: unknown) => error);
  expect(failureOf(thrown)).toMatchObject(failure);
});
