import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '#src/index.ts';
import { bareEnvironment } from '../support/program.ts';
import { laterNode } from './later-node.ts';
import { drawn } from './otel-runs.ts';

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/** Each line of the SDK, and the ways in which it is set up. */
const LINES: readonly [line: string, setUps: readonly string[]][] = [
  ['1', ['basic', 'added', 'node']],
  ['2', ['basic', 'node', 'sdk']],
  ['3', ['basic', 'sdk']],
];

async function runsOf(line: string, setUp: string): Promise<readonly RunRecord[]> {
  const binary = line === '3' ? laterNode() : process.execPath;
  const options = { env: { ...bareEnvironment(), NODE_NO_WARNINGS: '1', OTEL_SERVICE_NAME: 'tea' } };
  const { stdout } = await promisify(execFile)(binary, [here('otel-sdk-program.mjs'), line, setUp], options);
  return JSON.parse(stdout);
}

const named = (runs: readonly RunRecord[], name: string) => runs.find((run) => run.name === name) as RunRecord;
const otelOf = (run: RunRecord) => run.extra?.metadata?.otel as Record<string, unknown>;

it('the types fit every line of the SDK', async () => {
  await expect(promisify(execFile)(process.execPath, [tsc, '-p', here('tsconfig.json')])).resolves.toBeDefined();
});

const AGENT = { name: 'agent', type: 'chain', error: 'RangeError: no tea' };
const CHAT = { name: 'chat', type: 'llm', outputs: { usage_metadata: { input_tokens: 3 } } };
const INNER = { name: 'in a function', type: 'chain' };
const FUNCTION = { name: 'function', type: 'chain', outputs: {}, below: [INNER] };
const OPEN = { name: 'open', type: 'chain', metadata: { 'shop.user': 'ann' }, end: 'interrupted' };
const SERVED = { name: 'served', type: 'chain' };

describe.each(LINES)('a processor in SDK %s.x', (line, setUps) => {
  it.each(setUps)('makes one tree of spans and functions, set up as %s', async (setUp) => {
    const runs = await runsOf(line, setUp);
    const { outputs: _, ...inFunction } = FUNCTION;
    expect(drawn(runs)).toMatchObject([{ ...AGENT, below: [CHAT, inFunction] }, OPEN, SERVED]);
    const agent = named(runs, 'agent');
    expect(runs.filter(({ trace_id }) => trace_id === agent.id)).toHaveLength(4);
    expect(otelOf(agent)).toMatchObject({ kind: 'INTERNAL', scope: { name: 'shop', version: '1.2.3' } });
    expect(otelOf(named(runs, 'chat')).parent_span_id).toBe(otelOf(agent).span_id);
    expect(otelOf(named(runs, 'served'))).toMatchObject({
      trace_id: 'a'.repeat(32),
      parent_span_id: 'b'.repeat(16),
      parent_is_remote: true,
    });
    // Values that are objects came with 3.x.
    expect(agent.extra?.metadata?.['shop.basket']).toEqual(line === '3' ? { tea: 2 } : undefined);
    expect(agent.extra?.metadata?.['service.name']).toBe('tea');
  });
});
