import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentServer } from '#src/clients.ts';
import { createReceiver } from '#src/receiver.ts';
import { createPlatform, type Platform } from '#src/testing.ts';
import { readAll } from '../support/read-all.ts';
import { answers, ask, weather } from '../testing/agent-calls.ts';
import { type Agents, startAgents } from './agent-server/agents.ts';
import { cutBehind } from './agent-server/cut.ts';

let receiver: Awaited<ReturnType<typeof createReceiver>>;
let agents: Agents;
let platform: Platform;

beforeAll(async () => {
  receiver = await createReceiver({ port: 0 });
  agents = await startAgents(receiver.url);
  platform = await createPlatform({ assistants: { agent: weather } });
});

afterAll(async () => {
  await platform.close();
  await agents?.stop();
  await receiver.close();
});

describe.each([
  ['the in-memory agent server', () => ({ url: agents.url })],
  ['an agent server of a platform', () => ({ url: platform.agentUrl, apiKey: platform.apiKey })],
])('%s', (_, options) => {
  it.each(Object.entries(answers))('answers the calls of %s', async (_, holds) => {
    await using server = new AgentServer(options());
    await holds(server);
  });

  it.each([
    ['a cut', ''],
    ['an end of the response', '\r\n0\r\n\r\n'],
  ])('goes on after %s, without a gap or a repetition', async (_, end) => {
    const { url, ...key } = options();
    await using server = new AgentServer({ url, ...key });
    const { thread_id } = await server.threads.create();
    const proxy = await cutBehind(url, 'id: 5\n\n', end);
    await using cut = new AgentServer({ url: proxy.url + new URL(url).pathname, ...key });
    const run = { ...ask('weather?'), stream_resumable: true, stream_subgraphs: true } as const;

    const events = await readAll(await cut.runs.stream(thread_id, run));

    expect(events.map((event) => event.id)).toEqual(events.map((_, at) => String(at)));
    expect(events.length).toBeGreaterThan(8);
    const runs = `${new URL(server.url).pathname.replace(/\/$/, '')}/threads/${thread_id}/runs`;
    const runId = (events[0] as { data: { run_id: string } }).data.run_id;
    const requests = [`POST ${runs}/stream`, `GET ${runs}/${runId}/stream`, `GET ${runs}/${runId}`];
    expect(new Set(proxy.requests)).toEqual(new Set(requests));
    expect(await server.runs.list(thread_id).toArray(10)).toHaveLength(1);
  });
});

describe('the in-memory agent server', () => {
  it('shows the graph of an assistant', async () => {
    await using server = new AgentServer({ url: agents.url });
    const { assistants } = server;
    expect(await assistants.get('agent')).toMatchObject({ graph_id: 'agent' });
    const { nodes, edges } = await assistants.graph('agent', { xray: true });
    expect(nodes.map(({ id }) => id)).toContain('plan');
    expect(edges.map(({ source }) => source)).toContain('__start__');
    expect(await assistants.schemas('agent')).toMatchObject({ graph_id: 'agent' });
    for (const options of [{ recurse: true }, { namespace: 'weather' }])
      expect(Object.keys(await assistants.subgraphs('agent', options))).toEqual(['weather']);
  });

  it('streams every mode, with the namespace of the subgraph', async () => {
    await using server = new AgentServer({ url: agents.url });
    const { thread_id } = await server.threads.create();
    const modes = ['values', 'updates', 'messages', 'messages-tuple', 'events', 'tasks', 'debug', 'custom'] as const;
    const run = { ...ask('weather?'), stream_mode: modes, stream_subgraphs: true };

    const events = await readAll(await server.runs.stream(thread_id, run));

    const kinds = new Set(events.map(({ event }) => event));
    const expected = ['metadata', 'values', 'updates', 'messages', 'messages/metadata', 'messages/partial'];
    expect([...kinds]).toEqual(expect.arrayContaining([...expected, 'events', 'tasks', 'debug', 'custom']));
    expect(kinds).not.toContain('other');
    expect(kinds).not.toContain('malformed');
    expect(events.find(({ event }) => event === 'custom')?.data).toEqual({ progress: 'planned' });
    const below = events.find(({ event, namespace }) => event === 'updates' && namespace.length === 1);
    expect(below?.namespace[0]).toMatch(/^weather:[0-9a-f-]{36}$/);
    expect(Object.keys(below?.data as object)).toEqual(['look']);
  });
});
