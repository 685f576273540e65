#!/usr/bin/env node
// Installs the chat application's packages if its lockfile changed, and builds the chat if its sources changed. Needs
// dist/. `--force` always builds.
import { installLocked } from './install-locked.mjs';

const folder = new URL('../examples/chat/', import.meta.url);

await installLocked(folder);
const { build } = await import(new URL('build.mjs', folder));
build(process.argv.includes('--force'));
