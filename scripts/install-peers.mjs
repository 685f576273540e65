#!/usr/bin/env node
// Installs what `npm run test:peers` needs beside the development dependencies: every folder of test/peers/ that has a
// lockfile, when that has changed, and the Node that some of them ask for. They are folders of their own so that programs
// beside them still find runspan by its name.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { nodeBinary } from './node-binary.mjs';

const peers = new URL('../test/peers/', import.meta.url);

for (const entry of readdirSync(peers, { withFileTypes: true })) {
  const folder = new URL(`${entry.name}/`, peers);
  if (entry.isDirectory() && existsSync(new URL('package-lock.json', folder))) install(folder);
}

if (Number.parseInt(process.versions.node, 10) < 22) nodeBinary('22');

/** @param {URL} folder */
function install(folder) {
  const wanted = readFileSync(new URL('package-lock.json', folder), 'utf8');
  const installed = new URL('node_modules/.installed-lock.json', folder);
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return;
  // Some are for a later Node, and run on that one.
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: fileURLToPath(folder),
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  writeFileSync(installed, wanted);
}
