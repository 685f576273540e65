#!/usr/bin/env node
// Installs what `npm run test:peers` needs beside the development dependencies: other majors of packages that are
// there already. They have a package.json and a lockfile of their own, in a folder of their own so that programs beside
// it still find runspan by its name, and are installed when the lockfile has changed.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('../test/peers/majors/', import.meta.url);
const wanted = readFileSync(new URL('package-lock.json', folder), 'utf8');
const installed = new URL('node_modules/.installed-lock.json', folder);

if (wanted !== textOf(installed)) {
  // Some are for a later Node, and run on that one.
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: fileURLToPath(folder),
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  writeFileSync(installed, wanted);
}

/** @param {URL} file */
function textOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
