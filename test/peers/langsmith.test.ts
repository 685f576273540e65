import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '#src/index.ts';
import { createReceiver } from '#src/receiver.ts';

const program = fileURLToPath(new URL('./program.mjs', import.meta.url));

interface Node {
  readonly name: string;
  readonly type: string;
  readonly inputs: unknown;
  readonly outputs: unknown;
  readonly error: string | undefined;
  readonly hasEnded: boolean;
  readonly children: readonly Node[];
}

async function treesOf(library: string, environment: (url: string) => Record<string, string>): Promise<Node[]> {
  const receiver = await createReceiver();
  const env = { PATH: process.env.PATH ?? '', ...environment(receiver.url) };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, library], { env });
  const runs = await receiver.runs();
  await receiver.close();
  expect(stdout + stderr).toBe('');
  return below(undefined, runs);
}

function below(parent: string | undefined, runs: readonly RunRecord[]): Node[] {
  const nodes = runs
    .filter(({ parent_run_id }) => parent_run_id === parent)
    .map((run) => ({
      name: run.name,
      type: run.run_type,
      inputs: run.inputs,
      outputs: run.outputs ?? {},
      error: run.error?.split('\n')[0],
      hasEnded: run.end_time !== undefined,
      children: below(run.id, runs),
    }));
  // Two tools may start in the same millisecond.
  return nodes.sort(
    (a, b) => JSON.stringify(a.inputs).localeCompare(JSON.stringify(b.inputs)) || a.name.localeCompare(b.name),
  );
}

const theirs = () =>
  treesOf('langsmith', (url) => ({
    LANGSMITH_ENDPOINT: url,
    LANGSMITH_TRACING: 'true',
    LANGSMITH_API_KEY: 'key',
    LANGSMITH_PROJECT: 'shop',
  }));
const ours = () => treesOf('runspan', (url) => ({ RUNSPAN_ENDPOINT: url, RUNSPAN_PROJECT: 'shop' }));

describe('one program, traced by langsmith and by runspan', () => {
  it('has the same trees, names, types, inputs, outputs and error messages', async () => {
    const [expected, actual] = await Promise.all([theirs(), ours()]);

    expect(expected.map(({ children }) => children.length)).toEqual([1, 7]);
    expect(actual).toEqual(expected);
  });

  it('sends its runs to the endpoint of langsmith if only that is configured', async () => {
    const trees = await treesOf('runspan', (url) => ({
      LANGSMITH_ENDPOINT: url,
      LANGSMITH_TRACING: 'true',
      LANGSMITH_API_KEY: 'key',
    }));

    expect(trees.map(({ name }) => name).sort()).toEqual(['answer', 'failing']);
  });
});
