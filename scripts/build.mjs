#!/usr/bin/env node
// Compiles src/ to dist/. The output is written aside and takes the place of dist/ in one step, so that a failed build
// leaves the old one and a program that is reading dist/ meanwhile never finds it half empty.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const aside = join(root, 'node_modules', '.cache', `build-${process.pid}`);
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

mkdirSync(aside, { recursive: true });
try {
  const { status } = spawnSync(process.execPath, [tsc, '--outDir', join(aside, 'new')], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status === 0) replaceDist();
  else process.exitCode = 1;
} finally {
  rmSync(aside, { recursive: true, force: true });
}

function replaceDist() {
  const command = join(aside, 'new', 'cli', 'main.js');
  // npm sets this bit at installation; here it serves ./dist/cli/main.js in the checkout.
  if (existsSync(command)) chmodSync(command, 0o755);
  if (existsSync(dist)) renameSync(dist, join(aside, 'old'));
  renameSync(join(aside, 'new'), dist);
}
