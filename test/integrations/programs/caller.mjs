// Starts `callee.mjs`, and calls it with each client, all at the same time.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import * as http from 'node:http';
import { get } from 'node:http';
import { flush, traceable } from 'runspan';
import { Agent, fetch as fetchOfUndici, request } from 'undici';

const callee = fork(new URL('callee.mjs', import.meta.url));
const [port] = await once(callee, 'message');

const overHttp = (send, options) => async (url) => {
  const sent = send(url, options);
  sent.end();
  const [response] = await once(sent, 'response');
  await response.toArray();
};
const inPool = new Agent({ connections: 2 });
const clients = {
  fetch: async (url) => (await fetch(url)).text(),
  'fetch-request': async (url) => (await fetch(new Request(url, { method: 'POST', body: 'x' }))).text(),
  localhost: async (url) => (await fetch(url.replace('127.0.0.1', 'localhost'))).text(),
  undici: async (url) => (await request(url)).body.text(),
  'undici-fetch': async (url) => (await fetchOfUndici(url)).text(),
  http: overHttp(http.request, {}),
  'http-get': overHttp(get, {}),
  'http-agent': overHttp(http.request, { agent: new http.Agent({ keepAlive: true, maxSockets: 2 }) }),
  pool: async (url) => (await fetch(url, { dispatcher: inPool })).text(),
};

const counts = { pool: 40 };
const calls = Object.entries(clients).flatMap(([name, client]) =>
  Array.from({ length: counts[name] ?? 10 }, (_, index) => {
    const path = `/${name}-${index}`;
    return traceable(client, { name: path })(`http://127.0.0.1:${port}${path}`);
  }),
);
await Promise.all(calls);

callee.disconnect();
await Promise.all([once(callee, 'exit'), flush()]);
process.exit();
