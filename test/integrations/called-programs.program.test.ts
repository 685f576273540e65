// Programs that call each other.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { root } from '../support/folders.ts';
import { registered } from './registered.ts';

const program = join(root, 'test/integrations/programs/caller.mjs');
const call = (env: Readonly<Record<string, string>>) =>
  registered([process.execPath, '--import', 'runspan/register', program], env);

/** Counts the runs of the server by client, and by whether the parent of their request is the call, nothing, or another call. */
function parents(runs: readonly RunRecord[]): Record<string, number> {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const counts: Record<string, number> = {};
  for (const { name, parent_run_id, trace_id } of runs) {
    const [, path] = /^work (.*)/.exec(name) ?? [];
    if (path === undefined) continue;
    const request = byId.get(parent_run_id ?? '');
    const parent = byId.get(request?.parent_run_id ?? '');
    const isBelow = parent?.name === path && parent.trace_id === trace_id;
    const place = parent === undefined ? 'alone' : isBelow ? 'below' : 'below another';
    const key = `${path.slice(1).replace(/-\d+$/, '')} ${place}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

test('the runs of the called program are below the call, with every client and all at the same time', async () => {
  const { code, stderr, runs } = await call({ RUNSPAN_DEV: '{"program":"one"}' });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const clients = ['fetch', 'fetch-request', 'localhost', 'undici', 'undici-fetch', 'http', 'http-get', 'http-agent'];
  const { 'pool below': inPool = 0, 'pool alone': alone, ...others } = parents(runs);
  expect(others).toEqual(Object.fromEntries(clients.map((name) => [`${name} below`, 10])));
  // A request that waits for a free connection of a pool gets no headers rather than those of another run.
  expect(inPool + (alone ?? 0)).toBe(40);
});

test.each<Record<string, string>>([{}, { RUNSPAN_DEV: '{"program":"one"}', RUNSPAN_INSTRUMENTATIONS: '-propagation' }])(
  'with the environment %j, each program has its own traces',
  async (env) => {
    const { code, runs } = await call(env);
    expect(code).toBe(0);
    expect(Object.keys(parents(runs)).filter((key) => !key.endsWith('alone'))).toEqual([]);
  },
);

test('a request without a recorded call that calls another program is the root of its trace', async () => {
  const gateway = join(root, 'test/integrations/programs/gateway.mjs');
  const command = [process.execPath, '--import', 'runspan/register', gateway];
  const { code, stderr, tree } = await registered(command, { RUNSPAN_DEV: '{"program":"one"}' });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(tree).toEqual([
    'GET /fetch',
    '  GET /called/fetch',
    '    work /called/fetch',
    'GET /http',
    '  GET /called/http',
    '    work /called/http',
  ]);
});

const places = [['two processes', 'apart'], ['one process']];
test.each(places)('with `keep`, the 10 failed and slow of 1,000 traces in %s arrive, whole', async (_, ...args) => {
  const kept = join(root, 'test/integrations/programs/kept.mjs');
  const command = [process.execPath, '--import', 'runspan/register', kept, ...args];
  const env = { RUNSPAN_SAMPLE_RATE: '0', RUNSPAN_KEEP: 'error,slow>2s' };
  const { code, stderr, runs, tree } = await registered(command, env);
  const paths = [0, 100, 150, 300, 400, 450, 600, 700, 750, 900].map((at) => `/${at % 150 ? 'slow' : 'broken'}-${at}`);
  const expected = paths.flatMap((path) => [path, `  GET ${path}`, `    work ${path}`]);
  expect({ code, stderr, tree }).toEqual({ code: 0, stderr: '', tree: expected });
  const rules = runs.map(({ extra }) => `${extra?.metadata?.sampling} ${extra?.metadata?.sample_rate}`).toSorted();
  expect(rules).toEqual([...Array(21).fill('kept-error 0'), ...Array(9).fill('kept-slow 0')]);
});
