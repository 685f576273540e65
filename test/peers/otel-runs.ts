import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import type { RunRecord } from '#src/index.ts';
import type { EndReason } from '#src/run/record.ts';
import { startOpenAiServer } from '../support/openai-server.ts';
import { bareEnvironment } from '../support/program.ts';
import { laterNode } from './later-node.ts';

/** A run without ids, times and other values that differ in each execution. */
export interface DrawnRun {
  readonly name: string;
  readonly type: string;
  readonly inputs?: unknown;
  readonly outputs?: unknown;
  readonly error?: string;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly end?: EndReason;
  readonly isOpen?: true;
  readonly below?: readonly DrawnRun[];
}

export async function printedBy<Printed>(
  program: string,
  args: readonly string[],
  binary: string = process.execPath,
  env: Readonly<Record<string, string>> = {},
): Promise<Printed> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  // The seventh major of the AI SDK warns about deprecated functions.
  const options = { maxBuffer: 2 ** 24, env: { ...bareEnvironment(), NODE_NO_WARNINGS: '1', ...env } };
  const { stdout, stderr } = await promisify(execFile)(binary, [file, ...args], options);
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

/** Runs a program with a major of the AI SDK and a local server with OpenAI's protocol. */
export async function printedByAi<Printed>(program: string, major: string, form = ''): Promise<Printed> {
  const server = await startOpenAiServer();
  const binary = major === '7' ? laterNode() : process.execPath;
  return printedBy<Printed>(program, [major, server.url, form], binary).finally(server.close);
}

/** Returns the runs as trees in the order of `inOrder`, without attributes of resources, which early spans may lack. */
export function drawn(runs: readonly RunRecord[], parent?: string): DrawnRun[] {
  const children = runs.filter((run) => run.parent_run_id === parent);
  return inOrder(
    children.map((run) => {
      const below = drawn(runs, run.id);
      const { otel: _, 'service.name': __, 'host.name': ___, ...metadata } = run.extra?.metadata ?? {};
      const { inputs = {}, outputs = {}, error, tags = [] } = run;
      return {
        name: run.name,
        type: run.run_type,
        ...(Object.keys(inputs).length > 0 && { inputs }),
        ...(Object.keys(outputs).length > 0 && { outputs }),
        ...(error !== undefined && { error: error.split('\n')[0] ?? '' }),
        ...(tags.length > 0 && { tags }),
        ...(Object.keys(metadata).length > 0 && { metadata }),
        ...(run.extra?.runspan_end_reason && { end: run.extra.runspan_end_reason }),
        ...(run.end_time === undefined && { isOpen: true as const }),
        ...(below.length > 0 && { below }),
      };
    }),
  );
}

/** Sorts runs by name and inputs, because spans that start in the same millisecond have no order in time. */
export function inOrder(runs: readonly DrawnRun[]): DrawnRun[] {
  const keyOf = ({ name, inputs }: DrawnRun): string => `${name} ${JSON.stringify(inputs)}`;
  const sorted = runs.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return sorted.map((run) => (run.below === undefined ? run : { ...run, below: inOrder(run.below) }));
}
