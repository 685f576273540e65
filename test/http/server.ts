import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { listenInTest } from '../support/listen-in-test.ts';
import { requestBody } from '../support/request-body.ts';

export interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface TestServer {
  readonly server: Server;
  readonly url: string;
  readonly seen: readonly Seen[];
  readonly connections: () => number;
}

/**
 * Starts a server on a free port until the test has finished. By default, it responds with 204 once the body has
 * arrived.
 */
export async function serve(
  answer: RequestListener = (_, response) => response.writeHead(204).end(),
): Promise<TestServer> {
  const seen: Seen[] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    const body = await requestBody(request);
    if (body === undefined) return;
    seen.push({ method: request.method, url: request.url, headers: request.headers, body: body.toString() });
    answer(request, response);
  });
  server.on('connection', () => connections++);
  return { server, url: await listenInTest(server), seen, connections: () => connections };
}
