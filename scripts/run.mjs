import { spawnSync } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeBinary } from './node-binary.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Runs a program in the repository's root, and returns whether it ended with 0. If not, this process ends with its code.
 *
 * @param {string[]} command the program and its arguments
 * @param {{ node?: string, env?: Record<string, string> }} [options] `node` is the Node to use, also for programs that
 *   the program starts by name
 */
export function run(command, { node, env } = {}) {
  const path = node === undefined ? process.env.PATH : [dirname(node), process.env.PATH].join(delimiter);
  const { status } = spawnSync(node ?? process.execPath, command, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: path, ...env },
  });
  if (status !== 0) process.exitCode = status ?? 1;
  return status === 0;
}

/** Builds the package if its sources have changed. */
export function build() {
  return run(['scripts/build.mjs']);
}

/**
 * Returns the binary of a Node version such as `26`, or undefined if the text is not a version.
 *
 * @param {string | undefined} version
 */
export function nodeFor(version) {
  return /^\d+(\.\d+){0,2}$/.test(version ?? '') ? nodeBinary(version) : undefined;
}

/**
 * Prints how a script is called, and ends this process with 2.
 *
 * @param {string} usage
 */
export function failWith(usage) {
  console.error(usage);
  process.exit(2);
}
