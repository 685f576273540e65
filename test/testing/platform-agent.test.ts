import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { AgentServer, ControlPlane, submitFeedback } from '#src/clients.ts';
import { traceable } from '#src/index.ts';
import { type AssistantFunction, createPlatform, type Platform, type PlatformOptions } from '#src/testing.ts';
import { makeDeployment } from '../clients/control-plane-set-up.ts';
import { record } from '../instrument/recorder.ts';
import { gate } from '../support/gate.ts';
import { readAll } from '../support/read-all.ts';
import { answers, ask, weather } from './agent-calls.ts';

async function start(agent: AssistantFunction = weather, options: PlatformOptions = {}) {
  const platform = await createPlatform({ assistants: { agent }, statusMs: 0, ...options });
  onTestFinished(() => platform.close());
  const connect = (url = platform.agentUrl, apiKey = platform.apiKey) => {
    const server = new AgentServer({ url, apiKey });
    onTestFinished(() => server.close());
    return server;
  };
  return { platform, connect, server: connect() };
}

const RUN = ask('weather?');

const post = ({ agentUrl, apiKey }: Platform, path: string, body: unknown) =>
  fetch(agentUrl + path, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

it.each(Object.entries(answers))('an agent server answers the calls of %s', async (_, holds) => {
  await holds((await start()).server);
});

it('a stream has the events of its modes and ends with feedback URLs, by which feedback is on the run', async () => {
  const { platform, server } = await start(async function* (input, { emit, thread }) {
    emit('custom', { values: thread.values });
    emit('later', input);
    yield { messages: { type: 'ai', id: 'm', content: 'Hi.' }, count: 1 };
  });
  const { thread_id } = await server.threads.create();
  const modes = ['updates', 'messages', 'values', 'custom'] as const;
  const run = { assistant_id: 'agent', input: { question: '?' }, feedback_keys: ['liked'] };

  const stream = await server.runs.stream(thread_id, { ...run, stream_mode: modes });
  const events = await readAll(stream);

  const message = { type: 'ai', id: 'm', content: 'Hi.' };
  const values = { question: '?', messages: [message], count: 1 };
  expect(events.map(({ name, data }) => [name, data])).toEqual([
    ['metadata', { run_id: stream.runId, attempt: 1 }],
    ['values', { question: '?' }],
    ['custom', { values: {} }],
    ['later', { question: '?' }],
    ['messages/complete', [message]],
    ['updates', { agent: { messages: [message], count: 1 } }],
    ['values', values],
    ['feedback', { liked: expect.stringContaining(`${platform.url}/api/v1/feedback/tokens/`) }],
  ]);
  await submitFeedback((await stream.feedback()).liked as string, { score: 1 });
  const found = await fetch(`${platform.url}/query/runs/${stream.runId}`, {
    headers: { 'x-api-key': platform.apiKey },
  });
  expect(await found.json()).toMatchObject({ feedback: [{ key: 'liked', score: 1 }] });
});

it('a run is recorded in the trace of its caller, and the runs of its function below it', async () => {
  const look = traceable(() => 'sunny', { name: 'look' });
  const { platform, server } = await start(async function* () {
    yield { weather: look() };
  });
  const recorder = record();
  const { thread_id } = await server.threads.create({ metadata: { of: 1 } });

  await traceable(() => server.runs.wait(thread_id, { ...RUN, metadata: { a: 1 } }), { name: 'answer' })();

  const { trace_id, id } = recorder.run('runs.wait');
  const [run] = await platform.runs();
  expect(run).toMatchObject({
    ...{ name: 'agent', session_name: 'agent', trace_id, parent_run_id: id, inputs: RUN.input },
    ...{ outputs: { weather: 'sunny' }, end_time: expect.any(String), extra: { metadata: { thread_id, a: 1 } } },
  });
  expect(trace_id).toBe(recorder.run('answer').id);
  expect(recorder.run('look')).toMatchObject({ trace_id, parent_run_id: run?.id });
});

it('a run that fails or is cancelled, also with its thread, is recorded as such', async () => {
  const { platform, server } = await start();
  const { thread_id } = await server.threads.create();
  const failed = await server.runs.create(thread_id, ask('fail'));
  await readAll(await server.statelessRuns.joinStream(failed.run_id));
  const [one, other] = await server.statelessRuns.batch([ask('wait'), ask('wait')]);
  await server.statelessRuns.cancel({ run_ids: [String(one?.run_id)] });
  expect(await platform.runs()).toMatchObject([
    { id: failed.run_id, error: 'RangeError: no such city' },
    { id: one?.run_id, extra: { runspan_end_reason: 'cancelled' } },
  ]);
  await server.statelessRuns.cancel({ run_ids: [String(other?.run_id)] });
  const { run_id } = await server.runs.create(thread_id, ask('wait'));
  await server.threads.delete(thread_id);
  await readAll(await server.statelessRuns.joinStream(run_id));
  expect(await platform.runs()).toHaveLength(4);
});

it('a cancelled run ends at once, and its function when it goes on', async () => {
  const [released, ended] = [gate(), gate()];
  const { server } = await start(async function* () {
    try {
      yield { step: 1 };
      await released;
      yield { step: 2 };
    } finally {
      ended.open();
    }
  });
  const { thread_id } = await server.threads.create();
  const stream = await server.runs.stream(thread_id, { assistant_id: 'agent' });
  const run_id = String(stream.runId);
  for await (const { event, data } of stream) if (event === 'values' && data.step === 1) break;

  await server.runs.cancel(thread_id, run_id, { wait: true });
  released.open();
  await ended;

  expect(await server.runs.join(thread_id, run_id)).toEqual({ step: 1 });
  expect(await readAll(await server.runs.joinStream(thread_id, run_id))).toEqual([]);
});

it('a function is asked again with each answer, as if it had not run before', async () => {
  const { server } = await start(async function* (_, { interrupt }) {
    yield { count: 1 };
    yield { name: `${interrupt('First name?')} ${interrupt('Last name?')}` };
  });
  const { thread_id } = await server.threads.create();
  const resume = (answer: string) =>
    server.runs.wait(thread_id, { assistant_id: 'agent', command: { resume: answer } });

  const asked = await server.runs.wait(thread_id, { assistant_id: 'agent', input: { a: 1 } });

  expect(asked).toMatchObject({ a: 1, __interrupt__: [{ value: 'First name?' }] });
  const { values, next, tasks } = await server.threads.state(thread_id);
  expect([values, next]).toEqual([{ a: 1 }, ['agent']]);
  expect(tasks).toMatchObject([{ interrupts: [{ value: 'First name?' }] }]);
  expect(await resume('Ada')).toMatchObject({ __interrupt__: [{ value: 'Last name?' }] });
  expect(await resume('Lovelace')).toEqual({ a: 1, count: 1, name: 'Ada Lovelace' });
});

it('each deployment has its own data for each workspace, and runs in a project of its name', async () => {
  const [one, other] = [randomUUID(), randomUUID()];
  const { platform, connect, server } = await start(weather, {
    hosting: 'self-hosted',
    keys: { one: [one], other: [other] },
  });
  await using controlPlane = new ControlPlane({ baseUrl: platform.url, apiKey: 'one' });
  const { id } = await controlPlane.deployments.create(makeDeployment({ name: 'forecast' }));
  const url = `${platform.url}/agents/${id}`;
  const deployed = connect(url, 'one');
  const missing = { status: 404, detail: `No deployment ${id} with an active revision exists` };
  await expect(deployed.threads.create()).rejects.toMatchObject(missing);
  await controlPlane.deployments.waitUntilDeployed(id, { intervalMs: 1 });

  const { thread_id } = await deployed.threads.create();
  await deployed.runs.wait(thread_id, RUN);

  expect(await platform.runs()).toMatchObject([{ name: 'agent', session_name: 'forecast' }]);
  await expect(connect(url, 'other').threads.get(thread_id)).rejects.toMatchObject(missing);
  await expect(server.threads.get(thread_id)).rejects.toMatchObject({ status: 404 });
  const local = (await server.threads.create()).thread_id;
  await expect(connect(platform.agentUrl, 'other').threads.get(local)).rejects.toMatchObject({ status: 404 });
});

it('unknown ids, known ids and invalid requests are errors with a detail', async () => {
  const { platform, server } = await start();
  const { thread_id } = await server.threads.create();
  const none = randomUUID();
  const calls: [Promise<unknown>, number, unknown][] = [
    [server.runs.wait(none, RUN), 404, `The thread ${none} does not exist`],
    [server.runs.wait(thread_id, { assistant_id: 'other' }), 404, 'The assistant other does not exist'],
    [server.assistants.create({ graph_id: 'other' }), 404, 'The graph other does not exist'],
    [server.runs.get(thread_id, none), 404, `The run ${none} does not exist`],
    [server.threads.create({ thread_id }), 409, `The thread ${thread_id} already exists`],
    [server.assistants.graph('agent'), 501, 'The platform does not simulate assistants.graph'],
  ];
  for (const [call, status, detail] of calls) await expect(call).rejects.toMatchObject({ status, detail });
  expect(await server.runs.wait(none, { ...RUN, if_not_exists: 'create' })).toHaveProperty('messages');

  const invalid = await post(platform, '/threads/search', { limit: 1_001 });
  expect(invalid.status).toBe(422);
  expect(await invalid.json()).toMatchObject({ detail: [{ loc: ['body', 'limit'] }] });
  expect((await fetch(`${platform.agentUrl}/ok`)).status).toBe(401);
  const page = await post(platform, '/assistants/search', { metadata: {}, limit: 1, offset: 0 });
  expect(Object.fromEntries(page.headers)).toMatchObject({ 'x-pagination-total': '1' });
  expect(page.headers.has('x-pagination-next')).toBe(false);
});

it('cron jobs are stored, A2A repeats the message, and the reference lists the routes', async () => {
  const { server } = await start();
  const { cron_id } = await server.crons.create({ assistant_id: 'agent', schedule: '0 9 * * 1', input: {} });
  const cron = { cron_id, schedule: '0 9 * * 1', enabled: false, payload: { input: {} } };
  expect(await server.crons.update(cron_id, { enabled: false })).toMatchObject(cron);
  expect(await server.crons.search({ enabled: false }).toArray(10)).toMatchObject([cron]);
  await server.crons.delete(cron_id);
  expect(await server.crons.count()).toBe(0);
  const message = { parts: [{ kind: 'text', text: 'Hi.' }] };
  const answer = { ...message, kind: 'message', role: 'agent' };
  expect(await server.a2a.send('agent', { message })).toMatchObject(answer);
  expect(await readAll(await server.a2a.stream('agent', { message }))).toMatchObject([answer]);
  expect([await server.system.ok(), (await server.system.info()).flags.assistants]).toEqual([true, true]);
  expect(await server.docs()).toContain('<code>POST /threads/:thread_id/runs/stream</code>');
  await expect(server.a2a.send('other', { message })).rejects.toMatchObject({ status: 404 });
});

const error = (code: number) => ({ error: { code, message: expect.any(String) } });
const initialize = (protocolVersion: string) => ({ method: 'initialize', params: { protocolVersion } });

// modelcontextprotocol.io/specification/2025-11-25, a2a-protocol.org/v0.3.0/specification, and jsonrpc.org, section 5.1
it.each<[path: string, request: object | string, status: number, reply: object]>([
  ['/mcp/', {}, 200, { result: {} }],
  ['/mcp/', { method: 'tools/list', id: 'a' }, 200, { id: 'a', result: { tools: [] } }],
  ['/mcp/', { method: 'tools/call', params: { name: 'a' } }, 200, error(-32602)],
  ['/mcp/', initialize('2025-03-26'), 200, { result: { protocolVersion: '2025-03-26', capabilities: { tools: {} } } }],
  ['/mcp/', initialize('1.0.0'), 200, { result: { protocolVersion: '2025-11-25' } }],
  ['/mcp/', { method: 'message/send' }, 200, error(-32601)],
  ['/a2a/agent', initialize('2025-03-26'), 200, error(-32601)],
  ['/a2a/agent', { method: 'message/send', params: { message: { parts: [] } } }, 200, error(-32602)],
  ...['/mcp/', '/a2a/agent'].flatMap((path): [string, object | string, number, object][] => [
    [path, { method: 'toString' }, 200, error(-32601)],
    [path, { method: undefined }, 400, error(-32600)],
    [path, { jsonrpc: '1.0' }, 400, error(-32600)],
    [path, { params: 'a' }, 400, error(-32600)],
    [path, { id: null }, 400, { id: null, ...error(-32600) }],
    [path, '[]', 400, { id: null, ...error(-32600) }],
    [path, '{', 400, { id: null, ...error(-32700) }],
  ]),
])('JSON-RPC at %s answers %j with %i', async (path, request, status, reply) => {
  const { platform } = await start();
  const call = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const response = await post(platform, path, typeof request === 'string' ? request : { ...call, ...request });
  expect([response.status, await response.json()]).toMatchObject([status, { jsonrpc: '2.0', id: 1, ...reply }]);
  const notified = await post(platform, path, { jsonrpc: '2.0', method: 'notifications/initialized' });
  expect([notified.status, await notified.text()]).toEqual([202, '']);
});
