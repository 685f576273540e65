import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { RunRecord } from '#src/run/record.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { type Ended, runNode } from '../support/program.ts';

export interface Program extends Ended {
  readonly runs: RunRecord[];
}

/**
 * The source line that Node prints above an uncaught error. V8 does not print it after the error was caught or its stack was
 * read, and tracing does both.
 */
const PLACE = /^(file|node):.*\n.*\n\s*\^+\n/m;

/**
 * The stack frames that a wrapper adds: frames of the package, of `Reflect.apply`, and of Node, which has more of them if an
 * async context is active.
 */
const OWN_FRAMES = new RegExp(
  `^ +at .*(${pathToFileURL(join(root, 'dist')).href}/|Reflect\\.apply \\(|\\bnode:).*\\n`,
  'gm',
);

/**
 * Runs a program of the folder `programs` with the built package. The program writes its runs to a file. Removes process
 * ids, `PLACE` and `OWN_FRAMES` from standard error.
 */
export async function runProgram(name: string, args: readonly string[]): Promise<Program> {
  const folder = temporaryFolder();
  const runsFile = join(folder.path, 'runs.json');
  const program = fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));
  const ended = await runNode(['--stack-trace-limit=50', program, ...args], { RUNS_FILE: runsFile });
  const runs = JSON.parse(readFileSync(runsFile, 'utf8'));
  folder.remove();
  const stderr = ended.stderr
    .replaceAll(OWN_FRAMES, '')
    .replaceAll(/\(node:\d+\)/g, '(node)')
    .replace(PLACE, '');
  return { ...ended, stderr, runs };
}
