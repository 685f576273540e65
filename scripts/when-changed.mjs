import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, 'node_modules', '.cache');

/**
 * Runs a build, unless its outputs exist and its inputs have the same names and contents as at the last build.
 * `--force` on the command line always builds. Paths are relative to the checkout. A folder stands for all files in it,
 * except `node_modules` and outputs.
 *
 * @param {{ name: string, inputs: string[], outputs: string[] }} build
 * @param {() => boolean | Promise<boolean>} make returns false after a failure
 */
export async function whenChanged({ name, inputs, outputs }, make) {
  const stamp = join(cache, `${name}-inputs`);
  const hash = hashOf(inputs, outputs);
  const isThere = [...outputs, relative(root, stamp)].every((path) => existsSync(join(root, path)));
  if (isThere && readFileSync(stamp, 'utf8') === hash && !process.argv.includes('--force')) return;
  rmSync(stamp, { force: true });
  if (!(await make())) return;
  mkdirSync(cache, { recursive: true });
  writeFileSync(stamp, hash);
}

function hashOf(inputs, outputs) {
  const hash = createHash('sha256');
  for (const path of inputs.flatMap((input) => filesOf(input, outputs)).sort()) {
    hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex');
}

function filesOf(path, outputs) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path), { withFileTypes: true })
    .map((entry) => join(path, entry.name))
    .filter((inner) => !inner.endsWith('node_modules') && !outputs.includes(inner))
    .flatMap((inner) => filesOf(inner, outputs));
}
