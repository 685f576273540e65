import { createServer, type ServerResponse } from 'node:http';
import { listen } from '../../support/listen.ts';
import { startLocalModel } from '../../support/local-model/server.js';
import { requestBody } from '../../support/request-body.ts';

export interface Models {
  /** Variables with the services' addresses, under the names that the SDKs read, if any. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts services with the interfaces of OpenAI, Mistral, Anthropic, Gemini and Ollama. */
export async function startModels(): Promise<Models> {
  const local = await startLocalModel();
  const server = createServer(async (request, response) => {
    const body = JSON.parse(String(await requestBody(request)) || '{}');
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    if (pathname.startsWith('/v1beta/')) answerGemini(pathname, body, response);
    else if (pathname === '/api/chat') answerOllama(body, response);
    else response.writeHead(404).end();
  });
  const url = await listen(server);
  return {
    env: {
      MODEL_URL: local.url,
      OLLAMA_URL: url,
      OPENAI_BASE_URL: `${local.url}/v1`,
      OPENAI_API_KEY: 'key',
      ANTHROPIC_BASE_URL: local.url,
      ANTHROPIC_API_KEY: 'key',
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: 'key',
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await local.close();
    },
  };
}

const WORDS = ['It ', 'is ', 'raining.'];

interface GeminiRequest {
  contents: { parts: { functionResponse?: object }[] }[];
  tools?: { functionDeclarations: { name: string }[] }[];
}

/** Gemini's answer: a call of the first tool, or a text. Sent as one object, or as one event for each word. */
function answerGemini(path: string, { contents, tools }: GeminiRequest, response: ServerResponse): void {
  const usageMetadata = { promptTokenCount: 4, candidatesTokenCount: 3, totalTokenCount: 7 };
  const candidate = (part: object, rest: object = {}): string => {
    const candidates = [{ index: 0, content: { role: 'model', parts: [part] }, ...rest }];
    return JSON.stringify({ candidates, usageMetadata, modelVersion: 'gemini-small-2026', responseId: 'r1' });
  };
  const name = tools?.[0]?.functionDeclarations[0]?.name;
  const isAnswered = contents.at(-1)?.parts.some(({ functionResponse }) => functionResponse !== undefined);
  const call = { functionCall: { name, args: { city: 'Cork' } }, thoughtSignature: 'bm90IGEgdGhvdWdodA==' };
  const last = { finishReason: 'STOP' };
  const texts = WORDS.map((text) => ({ text }));
  if (path.endsWith(':generateContent')) {
    const part = name === undefined || isAnswered ? { text: WORDS.join('') } : call;
    response.setHeader('content-type', 'application/json').end(candidate(part, last));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  for (const [index, part] of (name === undefined || isAnswered ? texts : [call]).entries()) {
    response.write(`data: ${candidate(part, index === WORDS.length - 1 ? last : {})}\r\n\r\n`);
  }
  response.end();
}

/** Ollama's answer: one object, or one line for each word. */
function answerOllama({ model, stream }: { model: string; stream?: boolean }, response: ServerResponse): void {
  const head = { model, created_at: '2026-01-01T00:00:00Z' };
  const counts = { done: true, done_reason: 'stop', prompt_eval_count: 4, eval_count: 3, total_duration: 1 };
  const line = (content: string, rest: object): string =>
    `${JSON.stringify({ ...head, message: { role: 'assistant', content }, ...rest })}\n`;
  response.setHeader('content-type', stream ? 'application/x-ndjson' : 'application/json');
  if (!stream) {
    response.end(line(WORDS.join(''), counts));
    return;
  }
  for (const word of WORDS) response.write(line(word, { done: false }));
  response.end(line('', counts));
}
