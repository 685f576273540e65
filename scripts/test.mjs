#!/usr/bin/env node
// `npm test`: runs Biome and the type checks beside the tests, to keep both cores of a small machine busy. Builds first
// if the sources have changed. Arguments are passed to vitest.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);

const build = spawnSync(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root, stdio: 'inherit' });
if (build.status === 0) {
  const checks = check();
  const tests = start('vitest', 'vitest.mjs', ['run', '--project=!programs', ...process.argv.slice(2)], 'inherit');
  const codes = await Promise.all([exitOf(tests), checks]);
  process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
} else process.exitCode = 1;

/** Runs Biome and then the compiler. Prints a failed check's output immediately, and no other output. */
async function check() {
  let worst = 0;
  for (const [name, file, ...args] of [
    ['@biomejs/biome', 'bin/biome', 'check'],
    ['typescript', 'bin/tsc', '-p', 'tsconfig.check.json'],
    ['typescript', 'bin/tsc', '-p', 'src/viewer'],
  ]) {
    const child = start(name, file, args, 'pipe');
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    const code = await exitOf(child);
    const title = `${name} ${args.join(' ')}`;
    if (code === 0) continue;
    console.error(`${title} failed:\n${Buffer.concat(output)}`);
    worst = code;
  }
  return worst;
}

function start(name, file, args, stdio) {
  const program = join(dirname(require.resolve(`${name}/package.json`)), file);
  return spawn(process.execPath, [program, ...args], { cwd: root, stdio: ['ignore', stdio, stdio] });
}

async function exitOf(child) {
  const [code] = await once(child, 'close');
  return code ?? 1;
}
