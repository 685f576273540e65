import { readFileSync } from 'node:fs';
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

/** The versions of what is measured, as the lockfiles have them. */
export function versionsMeasured() {
  const own = ['undici'].map((name) => [name, lockedVersion('../package-lock.json', name)]);
  const peers = Object.keys(jsonAt('peers/package.json').dependencies).map((name) => [
    name,
    lockedVersion('peers/package-lock.json', name),
  ]);
  return { runspan: jsonAt('../package.json').version, ...Object.fromEntries([...own, ...peers]) };
}

function lockedVersion(lockfile, name) {
  return jsonAt(lockfile).packages[`node_modules/${name}`]?.version;
}

function jsonAt(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
