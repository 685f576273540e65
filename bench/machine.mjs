import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';

/** What the figures were measured on. */
export function describeMachine() {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    platform: `${process.platform}-${process.arch}`,
    node: process.version,
    v8: process.versions.v8,
    loadAtStart: loadavg()[0],
  };
}

/** The versions of what is measured, as the lockfiles have them; of runspan the build too, as it changes between versions. */
export function versionsMeasured() {
  const own = ['undici'].map((name) => [name, lockedVersion('../package-lock.json', name)]);
  const peers = Object.keys(jsonAt('peers/package.json').dependencies).map((name) => [
    name,
    lockedVersion('peers/package-lock.json', name),
  ]);
  return {
    runspan: jsonAt('../package.json').version,
    'build of it': buildHash(),
    ...Object.fromEntries([...own, ...peers]),
  };
}

/** Of the code that is measured. */
function buildHash() {
  const dist = new URL('../dist/', import.meta.url);
  const files = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.js'));
  const hash = createHash('sha256');
  for (const file of files.sort()) hash.update(readFileSync(new URL(file.replaceAll('\\', '/'), dist)));
  return hash.digest('hex').slice(0, 12);
}

function lockedVersion(lockfile, name) {
  return jsonAt(lockfile).packages[`node_modules/${name}`]?.version;
}

function jsonAt(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
