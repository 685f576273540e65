// A local model service for examples and tests. It implements the services' HTTP routes and event streams, needs no
// key, and derives its answers from the requests. `service.js` lists the model names that cause failures.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { anthropicRoutes } from './anthropic.js';
import { openaiRoutes } from './openai.js';

/** Routes of all services. A route is `{ method, path, answer(request) }`. */
const routes = [...anthropicRoutes, ...openaiRoutes];

/** Starts the server on 127.0.0.1, on a free port by default. `requests` lists the received requests in order. */
export async function startLocalModel({ port = 0 } = {}) {
  const requests = [];
  const server = createServer((incoming, outgoing) => {
    void receive(incoming, outgoing, requests).catch(() => outgoing.destroy());
  });
  // By default, node:http closes an idle connection after 5 s, also while a busy client sends a request on it.
  server.keepAliveTimeout = 0;
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function receive(incoming, outgoing, requests) {
  const { pathname } = new URL(incoming.url, 'http://localhost');
  const closed = once(outgoing, 'close').then(() => (outgoing.writableFinished ? 'finished' : 'aborted'));
  const text = await textOf(incoming);
  const request = {
    method: incoming.method,
    path: pathname,
    headers: incoming.headers,
    body: bodyOf(text),
    text,
    closed,
  };
  requests.push(request);
  const route = routes.find(({ method, path }) => method === request.method && path.test(pathname));
  const answer = route?.answer(request) ?? { status: 404, json: { error: { message: `no route ${pathname}` } } };
  await send(outgoing, answer, { 'x-request-id': `req_${requests.length}` });
}

/**
 * Sends an answer: `{ status, headers, json }`, `{ text }` instead of JSON, or `{ events, ending }` with the text of
 * server-sent events. Each event is written separately, and then the connection ends, hangs or drops. `{ ending: 'hang'
 * }` alone never answers.
 */
async function send(outgoing, { status = 200, headers, json, text, events, ending = 'end' }, ownHeaders) {
  const type = events === undefined ? 'application/json' : 'text/event-stream';
  if (ending === 'hang' && events === undefined) return;
  outgoing.writeHead(status, { 'content-type': type, ...ownHeaders, ...headers });
  for (const event of events ?? []) {
    if (outgoing.destroyed) return;
    outgoing.write(event);
    // Makes each event arrive as a separate chunk.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (ending === 'drop') outgoing.destroy();
  if (ending === 'end') outgoing.end(events === undefined ? (text ?? JSON.stringify(json)) : undefined);
}

async function textOf(incoming) {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}

/** JSON, or the text fields of a form. */
function bodyOf(text) {
  try {
    return JSON.parse(Buffer.from(text, 'latin1').toString('utf8'));
  } catch {
    const fields = text.matchAll(/name="([^"]+)"\r\n\r\n([^\r]*)\r\n/g);
    return Object.fromEntries([...fields].map(([, name, value]) => [name, value]));
  }
}
