#!/usr/bin/env node
// Installs the runtimes for `npm run test:runtimes` if the lockfile changed, and a later Node for miniflare. Programs
// in test/runtimes/ import this checkout's package and its `openai` by name, like an application.
import { installLocked, link } from './install-locked.mjs';
import { nodeBinary } from './node-binary.mjs';

const folder = new URL('../test/runtimes/', import.meta.url);

await installLocked(folder);
link(folder, 'runspan', '../../..');
link(folder, 'openai', '../../../node_modules/openai');
nodeBinary('24');
