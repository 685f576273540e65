#!/usr/bin/env node
// Completes the lockfiles of the repository. npm omits a platform's optional package if the registry does not serve it,
// and `npm ci` then refuses the lockfile. The missing entry can be derived from the package's name and its parent's
// version range, because packages for other platforms are never fetched.
//
//   node scripts/lockfile.mjs           adds the missing entries
//   node scripts/lockfile.mjs --check   prints the missing entries, and fails if there are any
import { readFileSync, writeFileSync } from 'node:fs';

const OPERATING_SYSTEMS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
];
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64'];

const root = new URL('../', import.meta.url);
for (const folder of ['', 'bench/peers/', 'docs/site/', 'examples/chat/', 'test/peers/', 'test/runtimes/']) {
  complete(`${folder}package-lock.json`);
}

/** @param {string} file */
function complete(file) {
  const path = new URL(file, root);
  const lock = JSON.parse(readFileSync(path, 'utf8'));
  const missing = Object.entries(lock.packages).flatMap(([path, parent]) =>
    Object.entries(parent.optionalDependencies ?? {})
      .map(([name, version]) => ({ place: placeOf(name, path), name, version, dev: parent.dev }))
      .filter(({ place }) => lock.packages[place] === undefined),
  );
  if (process.argv.includes('--check')) {
    for (const { name, version } of missing) console.error(`${file} lacks ${name}@${version}`);
    if (missing.length > 0) process.exitCode = 1;
  } else if (missing.length > 0) {
    for (const entry of missing) lock.packages[entry.place] = lockEntry(entry);
    lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')));
    writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
    console.log(`${file}: ${missing.length} entries added`);
  }
}

/**
 * Returns the path of a package in the `node_modules` folder of the project or workspace of another package.
 *
 * @param {string} name
 * @param {string} path
 */
function placeOf(name, path) {
  const workspace = path.slice(0, Math.max(0, path.indexOf('node_modules/')));
  return `${workspace}node_modules/${name}`;
}

/** @param {{ name: string, version: string, dev?: boolean }} entry */
function lockEntry({ name, version, dev }) {
  const words = name.split(/[/-]/);
  const os = OPERATING_SYSTEMS.filter((word) => words.includes(word));
  const cpu = PROCESSORS.filter((word) => words.includes(word));
  // WebAssembly runs on every platform.
  if (words.includes('wasm32')) return { version, cpu: ['wasm32'], ...(dev ? { dev } : {}), optional: true };
  if (os.length !== 1 || cpu.length !== 1) throw new Error(`The name ${name} does not say which platform it is for`);
  const libc = /-musl/.test(name) ? ['musl'] : /-gnu/.test(name) ? ['glibc'] : undefined;
  return { version, cpu, ...(dev ? { dev } : {}), ...(libc ? { libc } : {}), optional: true, os };
}
