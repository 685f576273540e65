// Agents of several frameworks that run in one process at the same time.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { registered } from '../integrations/registered.ts';
import { laterNode } from './later-node.ts';

const today = fileURLToPath(new URL('./today/', import.meta.url));
const env = { NODE_OPTIONS: `--import ${import.meta.resolve('runspan/register')}` };

async function agents(count: number, more: Readonly<Record<string, string>> = env, ...args: string[]) {
  const ended = await registered([laterNode(), 'agents.mjs', String(count), ...args], more, today);
  const stderr = ended.stderr.replaceAll(
    'No API key provided for OpenAI tracing exporter. Exports will be skipped\n',
    '',
  );
  expect([ended.code, stderr]).toEqual([0, '']);
  // If a connection fails under load, the SDK repeats the request. Each attempt has a run.
  const runs = ended.runs.filter(({ error }) => error === undefined);
  const ids = new Set(runs.map(({ trace_id }) => trace_id));
  return { ...ended, traces: [...ids].map((id) => runs.filter(({ trace_id }) => trace_id === id)) };
}

/** The names of the agents in the payloads of the runs. */
const agentsIn = (runs: readonly RunRecord[]): string[] => [
  ...new Set(runs.flatMap(({ inputs, outputs }) => JSON.stringify([inputs, outputs]).match(/\b[a-z]+\/\d+\b/g) ?? [])),
];

/** A line for each run, without its place among its siblings. */
function treeOf(runs: readonly RunRecord[]): string {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const pathOf = (run: RunRecord | undefined): string =>
    run === undefined ? '' : `${pathOf(byId.get(run.parent_run_id ?? ''))}/${run.name}`;
  return runs.map(pathOf).sort().join('\n');
}

/** The tree of each framework's agent, by the name of the framework. */
const treesOf = ({ traces }: Awaited<ReturnType<typeof agents>>) =>
  new Map(traces.map((runs) => [agentsIn(runs).join(' ').replace(/\/\d+/, ''), treeOf(runs)]));

test('200 agents of all frameworks have the trace that each has alone', async () => {
  const alone = await agents(1);
  const bare = await agents(25, {});
  const together = await agents(25);

  expect(together.stdout).toBe(bare.stdout);
  const trees = treesOf(alone);
  expect(trees.size).toBe(8);
  expect(together.traces).toHaveLength(200);
  for (const runs of together.traces) {
    const names = agentsIn(runs);
    expect(names).toHaveLength(1);
    expect(treeOf(runs)).toBe(trees.get(names.join().replace(/\/\d+/, '')));
  }
});

test('of 64 agents, those that are off are nowhere, and the others have the trace that each has alone', async () => {
  // LangChain's own tracer would send steps to the same receiver.
  const own = { ...env, LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: '<receiver>' };
  const trees = treesOf(await agents(1));
  const together = await agents(8, own, 'off');

  expect(together.stdout.match(/secret-/g)?.length).toBeGreaterThanOrEqual(32);
  expect(JSON.stringify(together.runs)).not.toContain('secret');
  expect(together.traces).toHaveLength(32);
  for (const runs of together.traces) {
    expect(treeOf(runs)).toBe(trees.get(agentsIn(runs).join().replace(/\/\d+/, '')));
  }
});

test('nothing of any agent is sent if tracing is off', async () => {
  expect((await agents(1, { ...env, RUNSPAN_TRACING: 'false' }, 'off')).runs).toEqual([]);
});
