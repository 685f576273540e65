#!/usr/bin/env node
// Installs the runtimes for `npm run test:runtimes` if the lockfile changed, and a later Node for miniflare. Programs
// in test/runtimes/ import this checkout's package and its `openai` by name, like an application.
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
