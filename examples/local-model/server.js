// A model service on this machine, for examples and tests: it speaks the HTTP and the event streams of the services, needs
// no key, and makes its answers of what it is asked. `service.js` lists the model names that ask for failures.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { anthropicRoutes } from './anthropic.js';
import { openaiRoutes } from './openai.js';

/** Every service that it speaks. A route is `{ method, path, answer(request) }`. */
const routes = [...anthropicRoutes, ...openaiRoutes];

/** Starts it on 127.0.0.1, on a free port unless one is given. `requests` lists what has come, in order. */
export async function startLocalModel({ port = 0 } = {}) {
  const requests = [];
  const server = createServer((incoming, outgoing) => {
    void receive(incoming, outgoing, requests).catch(() => outgoing.destroy());
  });
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
 * An answer is `{ status, headers, json }`, `{ text }` in the place of JSON, or `{ events, ending }`: text of server-sent events, each
 * written by itself, after which the connection ends, hangs or drops. `{ ending: 'hang' }` alone never answers.
 */
async function send(outgoing, { status = 200, headers, json, text, events, ending = 'end' }, ownHeaders) {
  const type = events === undefined ? 'application/json' : 'text/event-stream';
  if (ending === 'hang' && events === undefined) return;
  outgoing.writeHead(status, { 'content-type': type, ...ownHeaders, ...headers });
  for (const event of events ?? []) {
    if (outgoing.destroyed) return;
    outgoing.write(event);
    // Lets each event be a chunk of its own for whoever reads.
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
