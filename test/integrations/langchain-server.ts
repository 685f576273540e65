import { onTestFinished } from 'vitest';
import { type Answer, ingestServer, type Reply } from '../support/ingest-server.ts';

/** What is answered to one request: a status and JSON, the chunks of a stream, or nothing and a function that is told. */
export type ChatAnswer =
  | { readonly status?: number; readonly json: unknown }
  | { readonly chunks: readonly unknown[] }
  | (() => void);

/** Speaks chat completions for one test, by HTTP and by server-sent events: one answer after the other, then the last. */
export async function chatServer(...answers: ChatAnswer[]) {
  const server = await ingestServer((_, at) => replyOf(answers[Math.min(at, answers.length - 1)]));
  onTestFinished(server.close);
  return { url: `${server.url}/v1`, requests: () => server.received.map(({ body }) => JSON.parse(String(body))) };
}

function replyOf(answer: ChatAnswer = { status: 500, json: {} }): Reply {
  if (typeof answer === 'function') {
    answer();
    return 'hold';
  }
  return 'json' in answer ? { status: answer.status ?? 200, body: JSON.stringify(answer.json) } : stream(answer.chunks);
}

function stream(chunks: readonly unknown[]): Answer {
  const events = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'];
  const headers = { 'content-type': 'text/event-stream' };
  return { status: 200, headers, body: events.map((data) => `data: ${data}\n\n`).join('') };
}
