#!/usr/bin/env node
// Installs what test/peers/ needs and the root cannot have beside its own, unless the same is there already.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../test/peers/', import.meta.url));
const lock = readFileSync(`${folder}package-lock.json`, 'utf8');
const installed = `${folder}node_modules/.installed-lock.json`;

if (!existsSync(installed) || readFileSync(installed, 'utf8') !== lock) {
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status === 0) writeFileSync(installed, lock);
  else process.exitCode = 1;
}
