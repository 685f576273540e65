import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import type { RunRecord } from '../../src/run/record.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/**
 * Compiles a project of the checkout by the real `tsc`, for programs that run in a process of their own, and tells the
 * tests of this place the folder of the output. It lies below node_modules/, so that what it imports is found.
 */
export function built(project: string): () => string {
  const cache = join(root, 'node_modules', '.cache');
  let folder = '';
  beforeAll(() => {
    mkdirSync(cache, { recursive: true });
    folder = mkdtempSync(join(cache, 'instrument-'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    execFileSync(process.execPath, [tsc, '-p', join(root, project), '--outDir', folder], { stdio: 'inherit' });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return () => folder;
}

/** What a program left behind. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  /** Without the frames of stacks, and without the place that Node tells of until a stack has been read. */
  readonly stderr: string;
}

export interface Program extends Ended {
  readonly runs: RunRecord[];
}

/** Runs a program to its end, with nothing in its environment that would configure tracing. */
export function run(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(RUNSPAN|LANGSMITH|NODE_OPTIONS|VITEST)/.test(name),
  );
  const options = { env: { ...Object.fromEntries(inherited), ...env }, timeout: 20_000 };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number') reject(error);
      else
        resolve({
          code: Number(error?.code ?? 0),
          stdout,
          stderr: stderr.replaceAll(/^\s+at .*\n|^(file|node):.*\n.*\n\s*\^+\n/gm, ''),
        });
    });
  });
}

/** The same, for one of the programs beside this file, which writes its runs to the file that it is told. */
export async function runProgram(folder: string, name: string, args: readonly string[]): Promise<Program> {
  const runsFile = join(folder, `${[name, ...args].join('-').replaceAll(/\W/g, '-')}.json`);
  const program = fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));
  const ended = await run(program, args, { RUNSPAN_BUILT: folder, RUNS_FILE: runsFile });
  return { ...ended, runs: JSON.parse(readFileSync(runsFile, 'utf8')) };
}
