#!/usr/bin/env node
// Builds the documentation site into docs/site/dist. Installs VitePress first if the lockfile has changed. A link to a missing page
// fails the build.
//
//   npm run generate -- site                    builds the site
//   npm run generate -- site --serve            also serves it
//   npm run generate -- site --base /runspan/   builds it for this path of a web server
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { installLocked } from './install-locked.mjs';

const folder = new URL('../docs/site/', import.meta.url);

const args = process.argv.slice(2).filter((arg) => arg !== '--serve');
await installLocked(folder);
if (vitepress('build', ...args) && process.argv.includes('--serve')) vitepress('preview', ...args);

function vitepress(...args) {
  const program = fileURLToPath(new URL('node_modules/vitepress/bin/vitepress.js', folder));
  const { status } = spawnSync(process.execPath, [program, ...args], { cwd: folder, stdio: 'inherit' });
  process.exitCode = status ?? 1;
  return status === 0;
}
