import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { answerAnthropic } from './anthropic.js';

const routes = [answerAnthropic];

/**
 * Starts a server on this machine that speaks the HTTP of model services, with answers made of the questions: for
 * examples and tests that need no key. `requests` has what it was asked, `close()` ends it and its connections.
 */
export async function startLocalModel({ port = 0 } = {}) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const bodyText = await text(request).catch(() => '');
    requests.push({ method: request.method, url: request.url, headers: request.headers, bodyText });
    for (const route of routes) if (await route(request, response, bodyText)) return;
    response
      .writeHead(404, { 'content-type': 'application/json' })
      .end('{"error":{"message":"There is no such route."}}');
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  return { url: `http://127.0.0.1:${server.address().port}`, requests, close };
}
