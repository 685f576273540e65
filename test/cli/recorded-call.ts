import { onTestFinished, vi } from 'vitest';
import { rerunRoutes } from '#src/cli/rerun/rerun-routes.ts';
import { exactJson } from '#src/payload/fields.ts';
import { receiverWith } from '#src/receiver/receiver.ts';
import { DEFAULT_SCOPE, MemoryStore, type RunFields } from '#src/receiver.ts';
import { idOf, run } from '../browser/runs.ts';
import { serve } from '../http/server.ts';
import { environmentOf } from '../support/environment.ts';
import { testFolder } from '../support/test-folder.ts';

export const REQUEST = { model: 'small', messages: [{ role: 'user', content: 'Is it raining?' }] };
export const CALL = 'openai.chat.completions';

/** Starts a receiver with the routes and a recorded call of a service, and returns what both get. */
export async function startRecorded(
  { call: name = CALL, request = REQUEST as object, allowed = [] as string[], path = '/v1/chat/completions' } = {},
  variables: Record<string, string> = {},
) {
  const service = await serve((_, response) => {
    const { model } = JSON.parse(service.seen.at(-1)?.body ?? '{}');
    if (model === 'moved') return response.writeHead(307, { location: `${other.url}${path}` }).end();
    if (model === 'bad') return response.writeHead(404).end('{"error":{"message":"no such model"}}');
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const tool_calls = [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } }];
    const answer = model === 'looks' ? { content: null, tool_calls } : { content: 'Yes, today.' };
    const choices = [{ index: 0, message: { role: 'assistant', ...answer }, finish_reason: 'stop' }];
    response.setHeader('content-type', 'application/json');
    return response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model, choices, usage }));
  });
  const other = await serve();
  environmentOf();
  const base = { OPENAI_BASE_URL: `${service.url}/v1`, OPENAI_API_KEY: 'sk-of-the-environment', ...variables };
  for (const [key, value] of Object.entries(base)) vi.stubEnv(key, value);
  const exchange = { call: name, url: service.url + path, request, status: 200, response: {} };
  const bytes = new TextEncoder().encode(exactJson(exchange));
  const operation = run(1, { name, run_type: 'llm', inputs: request, session_name: 'weather' } as RunFields);
  const attachments = [{ name: 'exchange', mimeType: 'application/json', bytes }];
  const store = new MemoryStore();
  await store.apply(DEFAULT_SCOPE, [{ ...operation, attachments }, run(2, { name: 'unrecorded', run_type: 'llm' })]);
  const routes = rerunRoutes({ folder: testFolder({}), allowed });
  const started = await receiverWith({ store }, { routes });
  onTestFinished(() => started.close());
  const { url } = started;
  const rerun = (body: object, id = idOf(1)) => lines(url, id, body);
  return { service, other, store, url, rerun, receiver: started };
}

/** Reruns a call, and returns the lines of the response, or its status and its error. */
async function lines(url: string, id: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/query/runs/${id}/rerun`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) return [response.status, JSON.parse(text).detail];
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}
