/** Installs packages into an empty project. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Installs packages, given as for `npm install`. `remove` deletes the project. */
export function install(packages) {
  const folder = mkdtempSync(join(tmpdir(), 'runspan-bench-'));
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  npm(['install', '--ignore-scripts', '--prefer-offline', ...packages], folder);
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const installed = Object.entries(lock.packages).filter(([path]) => path !== '' && isThere(join(folder, path)));
  return {
    folder,
    packages: installed.length,
    bytes: bytesOf(join(folder, 'node_modules')),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Packs this checkout as npm would publish it, and returns the file. */
export function packSelf(folder) {
  const [packed] = Object.values(
    JSON.parse(npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], ROOT)),
  );
  return join(folder, packed.filename);
}

function npm(args, cwd) {
  return execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
}

/** False for packages for other platforms, which are only in the lockfile. */
function isThere(folder) {
  return statSync(folder, { throwIfNoEntry: false }) !== undefined;
}

function bytesOf(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size;
  }
  return bytes;
}
