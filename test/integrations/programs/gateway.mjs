// Starts `callee.mjs`, and serves requests whose only work is a request to it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { flush } from 'runspan';

const callee = fork(new URL('callee.mjs', import.meta.url));
const [port] = await once(callee, 'message');

const clients = {
  '/fetch': async (url) => (await fetch(url)).text(),
  '/http': async (url) => (await once(get(url), 'response'))[0].toArray(),
};
const server = createServer(async ({ url }, response) => {
  await clients[url]?.(`http://127.0.0.1:${port}/called${url}`);
  response.end();
});
await once(server.listen(0, '127.0.0.1'), 'listening');
for (const path of [...Object.keys(clients), '/none']) {
  const [response] = await once(get({ port: server.address().port, path, agent: false }), 'response');
  await response.toArray();
}

server.close();
callee.disconnect();
await Promise.all([once(callee, 'exit'), once(server, 'close')]);
await flush();
process.exit();
