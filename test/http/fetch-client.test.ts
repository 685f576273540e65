import { expect, it, onTestFinished } from 'vitest';
import { failureOf } from '#src/http/failure.ts';
import { FetchClient } from '#src/http/fetch-client.ts';
import type { HttpClientOptions, HttpRequest } from '#src/http/transport.ts';
import { type IngestServer, ingestServerInTest, type Reply } from '../support/ingest-server.ts';

const POST: HttpRequest = { method: 'POST', path: '/runs', body: ['{}'] };

async function connected(reply: (index: number) => Reply, options: Partial<HttpClientOptions> = {}) {
  const server: IngestServer = await ingestServerInTest((_, index) => reply(index));
  const endpoint = new URL(`${server.url}/api`);
  const headers = { 'x-api-key': 'key' };
  const client = new FetchClient({ endpoint, headers, connectTimeoutMs: 5_000, requestTimeoutMs: 5_000, ...options });
  onTestFinished(() => client.destroy());
  return { server, client };
}

it('sends a body of several chunks, and returns the status, the headers and the text', async () => {
  const { server, client } = await connected(() => ({ status: 422, headers: { 'retry-after': '7' }, body: 'why' }));
  const body = [new TextEncoder().encode('{"a":'), '"ä"}'];

  expect(await client.send({ ...POST, body })).toMatchObject({
    status: 422,
    headers: { 'retry-after': '7' },
    text: 'why',
    isKeyless: false,
  });
  expect(server.received[0]?.path).toBe('/api/runs');
  expect(server.received[0]?.headers['x-api-key']).toBe('key');
  expect(String(server.received[0]?.body)).toBe('{"a":"ä"}');
});

it('follows no redirect, so that no other origin receives the key', async () => {
  const other = await ingestServerInTest();
  const { client } = await connected(() => ({ status: 307, headers: { location: `${other.url}/runs` } }));

  expect((await client.send(POST)).status).toBe(307);
  expect(other.received).toEqual([]);
});

it('rejects when the deadline passes, also while the application computes the headers', async () => {
  const { client } = await connected(() => 'hold', { requestTimeoutMs: 50 });
  const held = await client.send(POST).catch(failureOf);
  expect(held).toMatchObject({ detail: 'no response within 50 ms', mayHaveArrived: true });

  client.setHeaders((progress) => {
    progress.waitsFor = 'apiKey';
    return new Promise(() => {});
  });
  const waiting = await client.send(POST).catch(failureOf);
  expect(waiting).toMatchObject({ detail: '`apiKey` did not return within 50 ms', isLasting: true });
});

it('rejects when the client is closed, also while the application computes the headers', async () => {
  const { client } = await connected(() => 'hold');
  const closed = client.send(POST);
  void client.destroy();
  await expect(closed).rejects.toThrow('the client was closed');
  client.setHeaders(() => new Promise(() => {}));
  await expect(client.send(POST)).rejects.toThrow('the client was closed');
});

it.each<[string, typeof fetch]>([
  ['a `fetch`', () => new Promise(() => {})],
  ['a body', async () => new Response(new ReadableStream())],
])('does not wait for %s that ignores the signal', async (_, ignoring) => {
  const { client } = await connected(() => ({ status: 202 }), { fetch: ignoring, requestTimeoutMs: 20 });
  expect(await client.send(POST).catch(failureOf)).toMatchObject({ detail: 'no response within 20 ms' });
  const aborted = client.send({ ...POST, timeoutMs: 20_000 });
  client.abort();
  await expect(aborted).rejects.toThrow('the process ends');
  const closed = client.send(POST);
  await client.destroy();
  await expect(closed).rejects.toThrow('the client was closed');
});

it('accepts a `fetch` that returns a response or throws without a promise', async () => {
  const immediate = (() => new Response('{}', { status: 202 })) as unknown as typeof fetch;
  const { client } = await connected(() => ({ status: 202 }), { fetch: immediate });
  expect(await client.send(POST)).toMatchObject({ status: 202, text: '{}' });
  const throwing = await connected(() => ({ status: 202 }), {
    fetch: () => {
      throw new TypeError('fetch failed');
    },
  });
  expect(await throwing.client.send(POST).catch(failureOf)).toMatchObject({ detail: expect.stringMatching(/broke$/) });
});

// Node's `fetch` gives a reason for a failure and shows redirects, but the `fetch` of browsers does not.
it.each<[string, () => Promise<unknown>, object]>([
  [
    'a request that failed',
    () => Promise.reject(new TypeError('Failed to fetch')),
    { detail: 'no response arrived, or the connection broke', isLasting: false, mayHaveArrived: true },
  ],
  [
    'a body that broke off',
    async () => new Response(new ReadableStream({ pull: (body) => body.error(new TypeError('network error')) })),
    { detail: 'no response arrived, or the connection broke', isLasting: false, mayHaveArrived: true },
  ],
  [
    'a redirect',
    async () => ({ type: 'opaqueredirect', status: 0, headers: new Headers(), body: null }),
    { detail: expect.stringContaining('the service redirects to another URL'), isLasting: true },
  ],
])('explains %s although the browser does not', async (_, ofBrowser, failure) => {
  const { client } = await connected(() => ({ status: 202 }), { fetch: ofBrowser as typeof fetch });
  expect(await client.send(POST).catch(failureOf)).toMatchObject(failure);
});

it('names the cause of a refused connection', async () => {
  const { server, client } = await connected(() => ({ status: 202 }));
  await server.close();
  expect(await client.send(POST).catch(failureOf)).toMatchObject({ code: 'ECONNREFUSED', mayHaveArrived: false });
});
