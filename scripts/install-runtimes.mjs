#!/usr/bin/env node
// Installs the runtimes of `npm run test:runtimes`, when the lockfile has changed, and a later Node for miniflare. Programs in
// test/runtimes/ find the package of this checkout, and its `openai`, by their names, as in an application.
import { symlinkSync } from 'node:fs';
import { installLocked } from './install-locked.mjs';
import { nodeBinary } from './node-binary.mjs';

const folder = new URL('../test/runtimes/', import.meta.url);

await installLocked(folder);
link('runspan', '../../..');
link('openai', '../../../node_modules/openai');
nodeBinary('24');

/** @param {string} name @param {string} target */
function link(name, target) {
  try {
    symlinkSync(target, new URL(`node_modules/${name}`, folder), 'junction');
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
}
