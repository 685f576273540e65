import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** What is answered to one request: a status and JSON, the chunks of a stream, or nothing and a function that is told. */
export type Answer =
  | { readonly status?: number; readonly json: unknown }
  | { readonly chunks: readonly unknown[] }
  | (() => void);

/** Speaks chat completions for one test, by HTTP and by server-sent events: one answer after the other, then the last. */
export async function chatServer(...answers: Answer[]) {
  const requests: unknown[] = [];
  const server = createServer(async (request, response) => {
    requests.push(JSON.parse(await textOf(request)));
    const answer = answers[Math.min(requests.length, answers.length) - 1] ?? { status: 500, json: {} };
    if (typeof answer === 'function') {
      answer();
      return;
    }
    if ('json' in answer) {
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.json));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const chunk of answer.chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end('data: [DONE]\n\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}
