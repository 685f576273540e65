import { createServer, type ServerResponse } from 'node:http';
import { gate } from './gate.ts';
import { closeServer, listen } from './listen.ts';
import { requestBody } from './request-body.ts';

export interface ModelRequest {
  readonly path: string;
  readonly body: { readonly model: string; readonly stream?: boolean; readonly [key: string]: unknown };
}

export interface OpenAiServer {
  readonly url: string;
  readonly requests: ModelRequest[];
  /** Resolves when a client disconnects before the end of a response. */
  readonly left: Promise<void>;
  close(): Promise<void>;
}

const WORDS = ['It ', 'is ', 'raining', '.'];

const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 9,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 3 },
};

export const USAGE_METADATA = {
  input_tokens: 20,
  output_tokens: 9,
  total_tokens: 29,
  input_token_details: { cache_read: 8 },
  output_token_details: { reasoning: 3 },
};

/**
 * Starts a server with OpenAI's chat completions and embeddings, without a key. The model `broken` gets 400, the model
 * `silent` gets no answer, the stream of the model `endless` does not end, that of `cut` breaks off, and that of `long` has
 * a thousand words. With tools, the model calls the first tool once. With a response format, it returns JSON.
 */
export async function startOpenAiServer(): Promise<OpenAiServer> {
  const requests: ModelRequest[] = [];
  const left = gate();
  const server = createServer(async (request, response) => {
    response.on('close', () => response.writableEnded || left.open());
    const bytes = await requestBody(request);
    if (bytes === undefined) return;
    const body: ModelRequest['body'] = JSON.parse(bytes.toString());
    requests.push({ path: request.url ?? '', body });
    answer(request.url ?? '', body, response);
  });
  // By default, node:http closes an idle connection after 5 s, also while a busy client sends a request on it.
  server.keepAliveTimeout = 0;
  const url = await listen(server);
  return { url: `${url}/v1`, requests, left, close: () => closeServer(server) };
}

function answer(path: string, body: ModelRequest['body'], response: ServerResponse): void {
  if (body.model === 'silent') return;
  if (body.model === 'broken') {
    send(response, 400, { error: { message: 'no such tune', type: 'invalid_request_error', param: null, code: null } });
  } else if (path.endsWith('/embeddings')) {
    const { input } = body as unknown as { input: string[] };
    const data = input.map((_, index) => ({ object: 'embedding', index, embedding: [0.5, 0.25, index] }));
    send(response, 200, { object: 'list', data, model: body.model, usage: { prompt_tokens: 4, total_tokens: 4 } });
  } else if (body.stream === true) {
    void stream(body, response);
  } else {
    const message = messageFor(body);
    const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason: reasonOf(message) };
    send(response, 200, { ...head(body), object: 'chat.completion', choices: [choice], usage: USAGE });
  }
}

async function stream(body: ModelRequest['body'], response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (choices: unknown[], rest: object = {}): void => {
    const event = { ...head(body), object: 'chat.completion.chunk', choices, ...rest };
    response.write(`data: ${JSON.stringify(event)}\n\n`);
  };
  const delta = (fields: object, reason: string | null = null): void =>
    chunk([{ index: 0, delta: fields, finish_reason: reason }]);
  const message = messageFor(body);
  delta({ role: 'assistant' });
  for (const [index, call] of (message.tool_calls ?? []).entries()) delta({ tool_calls: [{ index, ...call }] });
  const answered = message.content === WORDS.join('') ? WORDS : [message.content ?? ''];
  const words = body.model === 'long' ? Array<string>(1_000).fill('la ') : answered;
  for (const content of words) if (content !== '') delta({ content });
  if (body.model === 'endless') return;
  if (body.model === 'cut') return void setImmediate(() => response.destroy());
  delta({}, reasonOf(message));
  chunk([], { usage: USAGE });
  response.end('data: [DONE]\n\n');
}

interface Message {
  readonly content: string | null;
  readonly tool_calls?: readonly object[];
}

function messageFor({ messages, tools, response_format: format }: ModelRequest['body']): Message {
  const [tool] = (tools ?? []) as { function: { name: string } }[];
  const isAnswered = (messages as { role: string }[]).some(({ role }) => role === 'tool');
  if (tool !== undefined && !isAnswered) {
    const call = { name: tool.function.name, arguments: '{"city":"Cork"}' };
    return { content: null, tool_calls: [{ id: 'call_1', type: 'function', function: call }] };
  }
  const isJson = ((format ?? {}) as { type?: string }).type?.startsWith('json') === true;
  return { content: isJson ? '{"city":"Cork","rain":true}' : WORDS.join('') };
}

function reasonOf({ tool_calls: calls }: Message): string {
  return calls === undefined ? 'stop' : 'tool_calls';
}

function head({ model }: ModelRequest['body']): object {
  return { id: 'chatcmpl-1', created: 1_700_000_000, model: `${model}-2026` };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
