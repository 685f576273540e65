import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentEvent, AgentServer } from '../../src/clients.ts';
import { createReceiver } from '../../src/receiver.ts';
import { agentEndpoints } from '../clients/agent-endpoints.ts';
import { root } from '../support/folders.ts';

const folder = join(root, 'test/peers/agent-server');
const _ask = (content: string) =>
  ({ assistant_id: 'agent', input: { messages: [{ type: 'human', content }] } }) as const;

let receiver: Awaited<ReturnType<typeof createReceiver>>;
let agents: ChildProcess;
let url: string;
let server: AgentServer;
const cwd = mkdtempSync(join(tmpdir(), 'runspan-agents-'));

beforeAll(async () => {
  receiver = await createReceiver({ port: 0 });
  const tracing = { LANGSMITH_ENDPOINT: receiver.url, LANGSMITH_API_KEY: 'lsv2_none', LANGSMITH_TRACING: 'true' };
  agents = fork(join(folder, 'start.mjs'), [join(folder, 'graph.mjs')], {
    cwd,
    silent: true,
    env: { PATH: process.env.PATH, HOME: cwd, ...tracing },
  });
  // It writes a line for each request; a pipe that nobody reads would stop it.
  agents.stdout?.resume();
  agents.stderr?.resume();
  const [started] = (await once(agents, 'message')) as [{ url: string }];
  url = started.url;
  server = new AgentServer({ url });
});

afterAll(async () => {
  await server.close();
  agents.disconnect();
  await once(agents, 'exit');
  await receiver.close();
  rmSync(cwd, { recursive: true, force: true });
});

async function _all(stream: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe('the in-memory agent server', () => {
  it.each(agentEndpoints.filter(({ missing }) => missing === undefined))('answers $call', async ({ holds }) => {
    await holds(server);
  });

  // What the table says of it: should it have them one day, the table is wrong.
  it.each(agentEndpoints.filter(({ missing }) => missing !== undefined))(
    'has no $call: it $missing',
    async ({ holds }) => {
      await expect(holds(server)).rejects.toThrow(/: (404|500)/);
    },
  );
});
