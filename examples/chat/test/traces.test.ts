import { configure, flush, shutdown } from 'runspan';
import { RunspanCallbackHandler } from 'runspan/langchain';
import { createReceiver, type Receiver } from 'runspan/receiver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SettingsError } from '../server/settings.ts';
import { openTraces, TraceService } from '../server/traces.ts';
import { isEndOf, startChatServer } from './support/chat-server.ts';

const callbacks = [new RunspanCallbackHandler()];
let receiver: Receiver;
beforeAll(async () => {
  receiver = await createReceiver();
  configure({ endpoint: receiver.url, tracing: true });
});
afterAll(async () => {
  await shutdown();
  await receiver.close();
});

async function runsOf(traceId: string) {
  await flush();
  return (await receiver.trace(traceId)) ?? [];
}

test.each([
  [false, 'is ignored'],
  [true, 'is joined if `joinTraces` is set'],
])('joinTraces: %s: the trace in a request header %s', async (joinTraces) => {
  await using chat = await startChatServer({ callbacks, joinTraces });
  const traceId = '018f2b2e-0000-7000-8000-000000000001';
  const trace = `20260101T000000000000Z${traceId}`;
  const body = { id: 1, method: 'run.start', params: { input: { messages: [{ role: 'user', content: 'Hello' }] } } };
  const response = await chat.client.post('/threads/t/commands', body, { 'runspan-trace': trace });
  const { result, meta } = (await response.json()) as { result: { run_id: string }; meta: { trace_id: string } };
  await chat.client.until('t', isEndOf(result.run_id));
  expect(meta.trace_id).toBe(joinTraces ? traceId : result.run_id);
  expect((await runsOf(meta.trace_id)).map(({ name }) => name)).toContain('chat turn');
});

test('a sampled-out turn is answered and not recorded', async () => {
  configure({ endpoint: receiver.url, tracing: true, sampleRate: 0 });
  await using chat = await startChatServer({ callbacks });
  const events = await chat.client.ask('t', 'hello');
  expect(events.at(-1)?.params.data.event).toBe('completed');
  expect(await runsOf(events[0]?.params.run_id ?? '')).toEqual([]);
  configure({ endpoint: receiver.url, tracing: true });
});

test.each([
  ['supervisor', 'Hello there, friend', [{ role: 'assistant', content: 'Hello there,' }]],
  ['researcher', '', undefined],
])('a turn stopped during an answer of the %s is cancelled at every level', async (hold, say, messages) => {
  await using chat = await startChatServer({ callbacks });
  chat.script.set({ hold, say, pieceChars: 6 });
  const stopped = await chat.client.say('t', 'heron');
  await chat.script.reached;
  await chat.client.cancel('t', stopped);
  await chat.client.until('t', isEndOf(stopped));
  await expect.poll(async () => (await runsOf(stopped)).filter(({ end_time }) => !end_time)).toEqual([]);
  const runs = await runsOf(stopped);
  const [model] = runs.filter(({ error, run_type }) => error && run_type === 'llm');
  const path = runs.filter(({ dotted_order = '?' }) => model?.dotted_order?.startsWith(dotted_order));
  expect(path.map(({ name }) => name)).toEqual(expect.arrayContaining(['chat turn', 'model_request', 'ScriptedModel']));
  expect(path.map(({ extra }) => extra?.runspan_end_reason)).toEqual(path.map(() => 'cancelled'));
  expect(runs.filter(({ error }) => error)).toEqual(path);
  expect(model?.outputs?.messages).toEqual(messages);
});

test('a failed turn has a failed run in its trace', async () => {
  await using chat = await startChatServer({ callbacks });
  chat.script.set({ fail: 1 });
  const failed = (await chat.client.ask('t', 'heron')).at(-1)?.params.run_id ?? '';
  const errors = async () => (await runsOf(failed)).filter(({ error }) => error).map(({ name }) => name);
  await expect.poll(errors).toContain('chat turn');
});

test('tracing can be off, and an endpoint must be a URL without a password', async () => {
  const open = (env: NodeJS.ProcessEnv) => openTraces({ env, tracePort: 0 });
  expect(await open({ RUNSPAN_TRACING: 'false' })).toMatchObject({ service: undefined, callbacks: [] });
  await expect(open({ RUNSPAN_ENDPOINT: 'nowhere' })).rejects.toThrow(SettingsError);
  await expect(open({ RUNSPAN_ENDPOINT: 'https://u:p@x.example' })).rejects.toThrow('RUNSPAN_API_KEY');
  const endpoint = { RUNSPAN_ENDPOINT: 'https://x.example' };
  await expect(open({ ...endpoint, CHAT_VIEWER_URL: 'javascript:alert()' })).rejects.toThrow('CHAT_VIEWER_URL');
});

test('feedback needs a run of the thread, and fails with a reason if the trace service is down', async () => {
  await using chat = await startChatServer({ traces: new TraceService({ endpoint: 'http://127.0.0.1:9' }) });
  const run = (await chat.client.ask('t', 'hello'))[0]?.params.run_id;
  const response = await chat.client.post(`/threads/t/runs/${run}/feedback`, {});
  expect([response.status, await response.json()]).toMatchObject([502, { error: 'bad_gateway' }]);
  expect((await chat.client.post('/threads/other/runs/none/feedback', {})).status).toBe(404);
});
