import type { ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
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

/** Responds to a request with these fields. */
export type Respond = (sent: { readonly model?: string }, response: ServerResponse) => unknown;

const answer: Respond = ({ model }, response) => {
  if (model === 'moved') return response.writeHead(307, { location: '/moved' }).end();
  if (model === 'bad') return response.writeHead(404).end('{"error":{"message":"no such model"}}');
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const tool_calls = [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } }];
  const said = model === 'looks' ? { content: null, tool_calls } : { content: 'Yes, today.' };
  const choices = [{ index: 0, message: { role: 'assistant', ...said }, finish_reason: 'stop' }];
  response.setHeader('content-type', 'application/json');
  return response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model, choices, usage }));
};

/** Starts a receiver with the routes and a recorded call of a service, and returns what both get. */
export async function startRecorded({
  call: name = CALL,
  request = REQUEST as object,
  outputs = {},
  path = '/v1/chat/completions',
  respond = answer,
} = {}) {
  const service = await serve((_, response) => respond(JSON.parse(service.seen.at(-1)?.body ?? '{}'), response));
  environmentOf({ OPENAI_BASE_URL: `${service.url}/v1`, OPENAI_API_KEY: 'sk-of-the-environment' });
  const exchange = { call: name, url: service.url + path, request, status: 200, response: {} };
  const bytes = new TextEncoder().encode(exactJson(exchange));
  const fields = { name, run_type: 'llm', ms: 5, inputs: request, outputs, session_name: 'weather' };
  const attachments = [{ name: 'exchange', mimeType: 'application/json', bytes }];
  const store = new MemoryStore();
  const recorded = { ...run(1, fields as RunFields), attachments };
  await store.apply(DEFAULT_SCOPE, [recorded, run(2, { name: 'unrecorded', run_type: 'llm' })]);
  const routes = rerunRoutes({ folder: testFolder({}), allowed: [] });
  const receiver = await receiverWith({ store }, { routes });
  onTestFinished(() => receiver.close());
  const { url } = receiver;
  /** Returns the lines of the response, or its status and its error. */
  const rerun = async (body: object, id = idOf(1)): Promise<unknown> => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(`${url}/query/runs/${id}/rerun`, init);
    const lines = (await response.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    return response.ok ? lines : [response.status, lines[0].detail];
  };
  return { service, store, url, rerun, receiver };
}
