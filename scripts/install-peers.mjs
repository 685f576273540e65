#!/usr/bin/env node
// Installs what `npm run test:peers` needs beside the development dependencies: the packages of the folders in
// test/peers/ whose part of the lockfile changed, the chat application, and the Node that some packages require.
// `install-peers.mjs clickhouse` installs only that folder.
import { readFileSync } from 'node:fs';
import { installLocked, link } from './install-locked.mjs';
import { nodeBinary } from './node-binary.mjs';

const peers = new URL('../test/peers/', import.meta.url);
const jsonIn = (name) => JSON.parse(readFileSync(new URL(name, peers), 'utf8'));
const { workspaces } = jsonIn('package.json');
const paths = Object.keys(jsonIn('package-lock.json').packages);
const countOf = (name) => paths.filter((path) => path.startsWith(`${name}/`)).length;

const [only] = process.argv.slice(2);
// Only `npm run test:mutants` needs the packages of mutants/. The largest folders are first, so that none of them is left
// for the end, when it would be installed alone.
const folders = workspaces
  .filter((name) => (only === undefined ? name !== 'mutants' : name === only))
  .sort((one, other) => countOf(other) - countOf(one))
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
