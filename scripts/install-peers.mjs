#!/usr/bin/env node
// Installs what `npm run test:peers` needs beside the development dependencies: the packages of the folders in
// test/peers/ whose part of the lockfile changed, the chat application, and the Node that some packages require.
// `install-peers.mjs clickhouse` installs only that folder.
import { readFileSync } from 'node:fs';
import { installLocked, link } from './install-locked.mjs';
import { nodeBinary } from './node-binary.mjs';

const peers = new URL('../test/peers/', import.meta.url);
const { workspaces } = JSON.parse(readFileSync(new URL('package.json', peers), 'utf8'));

const [only] = process.argv.slice(2);
// Only `npm run test:mutants` needs the packages of mutants/.
const folders = workspaces
  .filter((name) => (only === undefined ? name !== 'mutants' : name === only))
  .map((name) => new URL(`${name}/`, peers));
if (only === undefined) folders.push(new URL('../examples/chat/', import.meta.url));

// npm keeps one core busy only part of the time.
const install = async () => {
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) await installLocked(folder);
};
await Promise.all([install(), install()]);
// Programs in test/peers/ import runspan by name.
link(peers, 'runspan', '../../..');

if (only === undefined && Number.parseInt(process.versions.node, 10) < 22) nodeBinary('24');
