import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { type Ended, runNode } from '../support/program.ts';

const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

/**
 * Compiles a project of the checkout with `tsc`, for programs that run in a child process. Returns the output folder, which
 * is below node_modules/ so that imports of packages are resolved.
 */
export function built(project: string): () => string {
  const cache = join(root, 'node_modules', '.cache');
  let folder: ReturnType<typeof temporaryFolder>;
  beforeAll(() => {
    mkdirSync(cache, { recursive: true });
    folder = temporaryFolder(cache);
    writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }');
    execFileSync(process.execPath, [tsc, '-p', join(root, project), '--outDir', folder.path], { stdio: 'inherit' });
  });
  afterAll(() => folder.remove());
  return () => folder.path;
}

export interface Program extends Ended {
  readonly runs: RunRecord[];
}

/**
 * The source line that Node prints above an uncaught error. V8 does not print it after the error was caught or its stack was
 * read, and tracing does both.
 */
const PLACE = /^(file|node):.*\n.*\n\s*\^+\n/m;

/** Runs a program to its end. Removes process ids, `PLACE` and the frames that match `ownFrames` from standard error. */
export async function run(
  program: string,
  args: readonly string[],
  env?: Record<string, string>,
  ownFrames?: RegExp,
): Promise<Ended> {
  const { stderr, ...ended } = await runNode(['--stack-trace-limit=50', program, ...args], env);
  const kept = ownFrames === undefined ? stderr : stderr.replaceAll(ownFrames, '');
  return { ...ended, stderr: kept.replaceAll(/\(node:\d+\)/g, '(node)').replace(PLACE, '') };
}

/**
 * The stack frames that a wrapper adds: frames of the package, of `Reflect.apply`, and of Node if an AsyncLocalStorage is in
 * use.
 */
const OWN_FRAMES = new RegExp(
  `^ +at .*(${pathToFileURL(join(root, 'dist')).href}/|Reflect\\.apply \\(|AsyncLocalStorage\\.run \\(|process\\.callbackTrampoline \\().*\\n`,
  'gm',
);

/** Runs a program of the folder `programs` with the built package. The program writes its runs to a file. */
export async function runProgram(name: string, args: readonly string[]): Promise<Program> {
  const folder = temporaryFolder();
  const runsFile = join(folder.path, 'runs.json');
  const program = fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));
  const ended = await run(program, args, { RUNS_FILE: runsFile }, OWN_FRAMES);
  const runs = JSON.parse(readFileSync(runsFile, 'utf8'));
  folder.remove();
  return { ...ended, runs };
}
