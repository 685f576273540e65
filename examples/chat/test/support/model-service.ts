import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** What a service is asked. */
export interface Asked {
  readonly model: string;
  readonly messages: readonly SentMessage[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

export interface SentMessage {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

type Answer = (asked: Asked, response: ServerResponse, request: IncomingMessage) => void;

/** A service with the interface of OpenAI, on a free port, that answers as a test has it. */
export class ModelService implements AsyncDisposable {
  readonly url: string;
  readonly asked: Asked[];
  readonly #server: Server;

  private constructor(server: Server, asked: Asked[]) {
    this.#server = server;
    this.asked = asked;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  }

  static async start(answer: Answer): Promise<ModelService> {
    const asked: Asked[] = [];
    const server = createServer(async (request, response) => {
      const body = JSON.parse(await text(request)) as Asked;
      response.setHeader('x-request-id', asked.push(body));
      answer(body, response, request);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ModelService(server, asked);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Begins an answer, by pieces of it. */
export function begin(response: ServerResponse, ...deltas: readonly object[]): void {
  response.setHeader('content-type', 'text/event-stream');
  for (const delta of [{ role: 'assistant', content: '' }, ...deltas]) response.write(chunkOf(response, { delta }));
}

/** Ends an answer as it should be. */
export function finish(response: ServerResponse, reason = 'stop'): void {
  response.write(chunkOf(response, { delta: {}, finish_reason: reason }));
  response.end('data: [DONE]\n\n');
}

/** The pieces of an answer that says this. */
export function words(...pieces: readonly string[]): object[] {
  return pieces.map((content) => ({ content }));
}

/** The piece of an answer that calls a tool. */
export function call(id: string, name: string, args: string, index = 0): object {
  return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] };
}

function chunkOf(response: ServerResponse, choice: object): string {
  const id = `answer-${response.getHeader('x-request-id')}`;
  const choices = [{ index: 0, ...choice }];
  return `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}
