// What a fixture contains of recorded calls.
import { expect, onTestFinished, test } from 'vitest';
import { recordFetch } from '#src/integrations/fetch/record-fetch.ts';
import { randomFrom } from '../faults/random.ts';
import { serve } from '../http/server.ts';
import { record } from '../instrument/recorder.ts';
import { environmentOf } from '../support/environment.ts';
import { fixtureFrom, recordedFixture, recordedProgram } from './recorded-fixture.ts';

const random = randomFrom(20_261_128);
const bytes = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
const TEXTS = [1, 2, 3, 8, 12, 16, 24, 31, 32, 33, 64, 128, 200, 512, 3_000].flatMap((length) =>
  Array.from({ length: 3 }, () => bytes(length)).flatMap((data) => [
    data.toString('base64'),
    data.toString('base64url'),
  ]),
);

/** A request whose messages contain an earlier answer, and the response. */
interface Conversation {
  readonly path: string;
  readonly request: object;
  readonly messages: object[];
  readonly response: object;
}

const CONVERSATIONS: Readonly<Record<string, (text: string, id: string) => Conversation>> = {
  anthropic: (signature, id) => {
    const content = [
      { type: 'thinking', thinking: 'I look it up.', signature },
      { type: 'thinking', thinking: '', signature },
      { type: 'redacted_thinking', data: signature },
      { type: 'tool_use', id: `toolu_${id}`, name: 'look_up', input: { query: 'tea' } },
    ];
    const result = { type: 'tool_result', tool_use_id: `toolu_${id}`, content: 'a plant' };
    const messages = [
      { role: 'user', content: 'What is tea?' },
      { role: 'assistant', content },
      { role: 'user', content: [result] },
    ];
    return {
      path: '/v1/messages',
      messages,
      request: { model: 'small', max_tokens: 100, messages },
      response: { id: `msg_${id}`, type: 'message', role: 'assistant', content, usage: {} },
    };
  },
  'openai.responses': (encrypted_content, id) => {
    const output = [
      { type: 'reasoning', id: `rs_${id}`, summary: [], encrypted_content },
      { type: 'function_call', id: `fc_${id}`, call_id: `call_${id}`, name: 'look_up', arguments: '{"query":"tea"}' },
    ];
    const result = { type: 'function_call_output', call_id: `call_${id}`, output: 'a plant' };
    const messages = [{ role: 'user', content: 'What is tea?' }, ...output, result];
    return {
      path: '/v1/responses',
      messages,
      request: { model: 'small', input: messages },
      response: { id: `resp_${id}`, object: 'response', status: 'completed', output },
    };
  },
  'openai.chat.completions': (reasoning, id) => {
    const call = { id: `call_${id}`, type: 'function', function: { name: 'look_up', arguments: '{"query":"tea"}' } };
    const details = [{ type: 'reasoning.encrypted', data: reasoning, id: `rs_${id}`, format: 'openai-responses-v1' }];
    const message = { role: 'assistant', content: null, reasoning_details: details, tool_calls: [call] };
    const result = { role: 'tool', tool_call_id: `call_${id}`, content: 'a plant' };
    const messages = [{ role: 'user', content: 'What is tea?' }, message, result];
    return {
      path: '/v1/chat/completions',
      messages,
      request: { model: 'small', messages },
      response: { id: `chatcmpl-${id}`, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] },
    };
  },
  'gemini.interactions': (signature, id) => {
    const steps = [
      { type: 'thought', signature },
      { type: 'function_call', id, name: 'look_up', arguments: { query: 'tea' } },
    ];
    const result = { type: 'function_result', call_id: id, result: 'a plant' };
    const messages = [{ role: 'user', content: 'What is tea?' }, ...steps, result];
    return {
      path: '/v1beta/interactions',
      messages,
      request: { model: 'small', input: ['What is tea?', ...steps, result] },
      response: { id, status: 'completed', steps },
    };
  },
  gemini: (thoughtSignature, id) => {
    const parts = [
      { functionCall: { id, name: 'look_up', args: { query: 'tea' } }, thoughtSignature },
      { text: 'Tea', thoughtSignature },
    ];
    const response = { id, name: 'look_up', response: { output: 'a plant' } };
    const contents = [
      { role: 'user', parts: [{ text: 'What is tea?' }] },
      { role: 'model', parts },
      { role: 'user', parts: [{ functionResponse: response }] },
    ];
    const messages = [{ role: 'user' }, { tool_calls: [{ id }] }, { role: 'tool', tool_call_id: id }];
    return {
      path: '/v1beta/models/small:generateContent',
      messages,
      request: { contents },
      response: { candidates: [{ index: 0, content: { role: 'model', parts } }], responseId: id },
    };
  },
};

/** Sends a request for a ranking, which fails. */
const rank = async (): Promise<void> => {
  const { url } = await serve((_, response) => void response.writeHead(503).end('{}'));
  const body = JSON.stringify({ model: 'small', query: 'tea', documents: ['cup'] });
  await (await fetch(`${url}/v2/rerank`, { method: 'POST', body })).text();
};

test('a ranking is a model call, which is sent again if it is the failed step', async () => {
  const runs = await recordedProgram(rank);
  expect(runs).toMatchObject([{ run_type: 'retriever', error: 'HTTP 503' }]);
  expect(fixtureFrom(runs, runs[0]).fixture.calls).toMatchObject([{ call: 'cohere.rerank', isLive: true }]);
  const { missing } = fixtureFrom(await recordedProgram(rank, {}, { RUNSPAN_DEV: '{}' }));
  expect(missing).toEqual([expect.stringMatching(/^cohere.rerank: its request is not recorded/)]);
});

/** Records requests that are sent with `fetch`, and returns the calls of the fixtures. */
async function recordedCalls(conversations: readonly Conversation[]) {
  let at = 0;
  const { url } = await serve((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(conversations[at++]?.response));
  });
  environmentOf({ RUNSPAN_DEV: '{"exchanges":true}' });
  const recorder = record();
  onTestFinished(recordFetch());
  for (const { path, request } of conversations) {
    const sent = await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(request) });
    await sent.text();
  }
  await expect.poll(() => recorder.runs.filter(({ end_time }) => end_time).length).toBe(conversations.length);
  return recorder.runs.flatMap((run) => recordedFixture([run]).calls);
}

test.each(Object.entries(CONVERSATIONS))(
  'a fixture contains the opaque values and ids of %s as they are',
  async (_, of) => {
    const conversations = TEXTS.map((text) => of(text, bytes(18).toString('base64url')));
    const calls = await recordedCalls(conversations);
    expect(calls).toHaveLength(conversations.length);
    for (const [index, { messages, response }] of conversations.entries()) {
      expect(calls[index]?.request).toMatchObject({ messages });
      expect(calls[index]?.response).toEqual(response);
    }
  },
);

test.each(Object.entries(CONVERSATIONS))('a fixture masks a secret in the input of a tool of %s', async (_, of) => {
  const secret = `Bearer ${bytes(30).toString('base64url')}7`;
  const [plain, withSecret] = [{ query: 'tea' }, { query: 'tea', headers: { authorization: secret } }].map((input) =>
    JSON.stringify(input),
  ) as [string, string];
  const text = JSON.stringify(of('c2lnbmF0dXJl', '1'))
    .replaceAll(plain, withSecret)
    .replaceAll(JSON.stringify(plain).slice(1, -1), JSON.stringify(withSecret).slice(1, -1));
  const [call] = await recordedCalls([JSON.parse(text)]);
  const [request, response] = [call?.request, call?.response].map((part) => JSON.stringify(part));
  for (const part of [request, response]) {
    expect(part).toContain('[Redacted]');
    expect(part).not.toContain(secret);
  }
});
