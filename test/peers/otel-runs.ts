import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import type { RunRecord } from '../../src/index.ts';
import { bareEnvironment } from '../support/program.ts';

/** A run as a test expects it, without what is another each time. */
export interface DrawnRun {
  readonly name: string;
  readonly type: string;
  readonly inputs?: unknown;
  readonly outputs?: unknown;
  /** The first line. */
  readonly error?: string;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly isOpen?: true;
  readonly below?: readonly DrawnRun[];
}

/** The runs that a program of this folder prints, whose last argument is a base URL. */
export async function runsOf(program: string, ...args: readonly string[]): Promise<readonly RunRecord[]> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const options = { maxBuffer: 2 ** 24, env: { ...bareEnvironment(), NODE_NO_WARNINGS: '1' } };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file, ...args], options);
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

/** The runs as trees, each with its roots and children in the order of their start. */
export function drawn(runs: readonly RunRecord[], parent?: string): DrawnRun[] {
  const children = runs.filter((run) => run.parent_run_id === parent);
  return children.map((run) => {
    const below = drawn(runs, run.id);
    const { otel: _, 'service.name': __, ...metadata } = run.extra?.metadata ?? {};
    const { inputs = {}, outputs, error, tags = [] } = run;
    return {
      name: run.name,
      type: run.run_type,
      ...(Object.keys(inputs).length > 0 && { inputs }),
      ...(outputs !== undefined && { outputs }),
      ...(error !== undefined && { error: error.split('\n')[0] ?? '' }),
      ...(tags.length > 0 && { tags }),
      ...(Object.keys(metadata).length > 0 && { metadata }),
      ...(run.end_time === undefined && { isOpen: true }),
      ...(below.length > 0 && { below }),
    } as DrawnRun;
  });
}
