#!/usr/bin/env node
// Installs what `npm run test:peers` needs beside the development dependencies: the packages of every folder in
// test/peers/ whose lockfile changed, the chat application, and the Node that some of them require. The folders are
// separate, and programs in them find runspan by name. `install-peers.mjs clickhouse` installs only that folder.
import { existsSync, readdirSync } from 'node:fs';
import { installLocked } from './install-locked.mjs';
import { nodeBinary } from './node-binary.mjs';

const peers = new URL('../test/peers/', import.meta.url);

const [only] = process.argv.slice(2);
const folders = readdirSync(peers, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && (only === undefined || entry.name === only))
  .map(({ name }) => new URL(`${name}/`, peers))
  .filter((folder) => existsSync(new URL('package-lock.json', folder)));
if (only === undefined) folders.push(new URL('../examples/chat/', import.meta.url));

// npm keeps one core busy only part of the time.
const install = async () => {
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) await installLocked(folder);
};
await Promise.all([install(), install()]);

if (only === undefined && Number.parseInt(process.versions.node, 10) < 22) nodeBinary('24');
