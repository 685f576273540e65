#!/usr/bin/env node
// Installs the chat application, where that has not been done since its lockfile changed, and builds it: the server by its own
// compiler, the page by its own Vite, both into examples/chat/build. It runs on dist/, which has to be there. Without a change of
// either since the last build it returns at once; `--force` builds all the same.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installLocked } from './install-locked.mjs';
import { whenChanged } from './when-changed.mjs';

const folder = new URL('../examples/chat/', import.meta.url);

await installLocked(folder);
const inputs = ['examples/chat', 'dist', 'scripts/build-chat.mjs'];
await whenChanged({ name: 'chat-build', inputs, outputs: ['examples/chat/build'] }, () => {
  // What was built of sources that are gone would stay.
  rmSync(new URL('build/', folder), { recursive: true, force: true });
  run('typescript', 'bin/tsc', '-p', '.');
  // Vite does not look at types: a test of the application does.
  run('vite', 'bin/vite.js', 'build');
  return true;
});

/** A program of a package that the application has installed. */
function run(name, file, ...args) {
  const packageFile = createRequire(new URL('package.json', folder)).resolve(`${name}/package.json`);
  execFileSync(process.execPath, [join(dirname(packageFile), file), ...args], {
    cwd: fileURLToPath(folder),
    stdio: 'inherit',
  });
}
