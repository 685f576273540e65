// Builds the server with tsc and the page with Vite, into `build/`. Does nothing if no source changed since the last
// build. `--force` always builds.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
export const STAMP = join(folder, 'build/.sources');
const SOURCES = [
  'server',
  'page',
  'test/programs',
  'test/support',
  'config.ts',
  'package-lock.json',
  'tsconfig.json',
  'vite.config.ts',
  'node_modules/runspan/dist/browser',
];

/** Returns the path of a file in an installed package, for example of its program. */
export function program(name, file) {
  return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), file);
}

export function build(isForced) {
  const hash = createHash('sha256');
  for (const file of SOURCES.flatMap(filesIn)) hash.update(`${file}\0`).update(readFileSync(join(folder, file)));
  const sources = hash.digest('hex');
  if (!isForced && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === sources) return;
  // The folder is deleted first. Otherwise, the compiled files of deleted sources would remain.
  rmSync(join(folder, 'build'), { recursive: true, force: true });
  run(program('typescript', 'bin/tsc'), '-p', '.');
  run(program('vite', 'bin/vite.js'), 'build');
  writeFileSync(STAMP, sources);
}

function run(...args) {
  execFileSync(process.execPath, args, { cwd: folder, stdio: 'inherit' });
}

function filesIn(path) {
  if (!existsSync(join(folder, path))) return [];
  if (!statSync(join(folder, path)).isDirectory()) return [path];
  return readdirSync(join(folder, path))
    .sort()
    .flatMap((name) => filesIn(`${path}/${name}`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) build(process.argv.includes('--force'));
