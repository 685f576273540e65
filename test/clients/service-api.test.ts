import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { ClientOptions } from '../../src/clients/client-options.ts';
import { serviceApi } from '../../src/clients/service-api.ts';
import { serve } from '../http/server.ts';
import { GET, thrownBy } from './make-api.ts';

function apiOf(url: string, credentials: Record<string, string | undefined>, options: ClientOptions = {}) {
  const api = serviceApi({ option: 'baseUrl', url, credentials }, options);
  onTestFinished(() => api.close());
  return api;
}

test('a call carries the credentials that there are, without white space around them, and the headers of the client', async () => {
  const { url, seen } = await serve((_, response) => response.end('{}'));
  const credentials = { 'X-Api-Key': ' key-1\n', 'x-tenant-id': undefined, authorization: 'Bearer token-2' };
  await apiOf(url, credentials, { headers: { 'x-a': 'b' }, apiKey: 'key-1' }).json(GET);
  expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'key-1', authorization: 'Bearer token-2', 'x-a': 'b' });
  expect(seen[0]?.headers).not.toHaveProperty('x-tenant-id');
});

test('no error and no inspection tells the credentials, nor headers that carry others [security 1]', async () => {
  const { url } = await serve((request, response) => response.writeHead(400).end(JSON.stringify(request.headers)));
  const headers = { 'X-Auth-Token': 'token-3', 'Proxy-Authorization': 'Basic basic-4', 'x-plain': 'plain-5' };
  const api = apiOf(url, { 'x-api-key': 'key-1\n', authorization: 'bearer token-2' }, { headers });
  const error = await thrownBy(api.json(GET));
  const text = inspect([error, api], { depth: 20, showHidden: true });
  for (const secret of ['key-1', 'token-2', 'token-3', 'basic-4']) expect(text).not.toContain(secret);
  expect(text).toContain('plain-5');
});

test('an error tells the workspace, which is no secret', async () => {
  const { url } = await serve((request, response) =>
    response.writeHead(404).end(`Not in ${request.headers['x-tenant-id']}`),
  );
  const api = apiOf(url, { 'x-api-key': 'key-1', 'x-tenant-id': 'search' });
  expect(await thrownBy(api.json(GET))).toMatchObject({ detail: 'Not in search' });
});

test.each<[Record<string, string>, ClientOptions]>([
  [{ 'x-api-key': 'key-1' }, {}],
  [{}, { headers: { authorization: 'Basic abc' } }],
])('with a key the address is no plain HTTP to another machine: %j %j', (credentials, options) => {
  const making = () => serviceApi({ option: 'baseUrl', url: 'http://host.test', credentials }, options);
  expect(making).toThrow('Expected `baseUrl` to be an https address');
  expect(() =>
    serviceApi({ option: 'baseUrl', url: 'http://host.test', credentials }, { ...options, allowInsecure: true }),
  ).not.toThrow();
});

test('without a key it may be', () => {
  expect(() => serviceApi({ option: 'url', url: 'http://host.test', credentials: {} }, {})).not.toThrow();
});
