// `AgentServer` with the SDKs of MCP and A2A, and an agent server made with them in another process.
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { registered } from '../integrations/registered.ts';
import { laterNode } from './later-node.ts';

const cwd = fileURLToPath(new URL('./today/', import.meta.url));
const register = import.meta.resolve('runspan/register');
const packages = { RUNSPAN: import.meta.resolve('runspan'), CLIENTS: import.meta.resolve('runspan/clients') };

it.each(['1', '2'])('calls over MCP, with the SDK %s, and A2A are in the trace of the server', async (version) => {
  const command = [laterNode(), 'agent-protocols.mjs', version];

  const bare = await registered(command, { ...packages, RUNSPAN_TRACING: 'false' }, cwd);
  const traced = await registered(command, { ...packages, NODE_OPTIONS: `--import ${register}` }, cwd);

  expect([bare.code, bare.stderr, bare.runs]).toEqual([0, '', []]);
  expect([traced.code, traced.stderr]).toEqual([0, '']);
  expect(traced.stdout).toBe(bare.stdout);
  expect(traced.stdout.split('\n').slice(0, -1)).toEqual([
    'You said: over MCP',
    'Knows the weather',
    'You said: over A2A',
    'task',
    'artifact-update',
    'status-update',
    'RUNSPAN_NOT_FOUND',
  ]);
  expect(traced.tree).toEqual([
    'job',
    '  agent',
    '    openai.responses',
    '  a2a.send',
    '    POST /a2a/agent',
    '      openai.responses',
    '  a2a.stream',
    '    POST /a2a/agent',
    '      openai.responses',
    '  a2a.send',
  ]);
});
