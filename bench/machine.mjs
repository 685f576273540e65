import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';

/** Describes the machine and the Node version. */
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

/** Returns the measured versions: runspan with a hash of its build, and the peers as pinned in their package.json. */
export function versionsMeasured() {
  return {
    runspan: `${jsonAt('../package.json').version} (build ${buildHash()})`,
    undici: jsonAt('../package-lock.json').packages['node_modules/undici'].version,
    ...jsonAt('peers/package.json').dependencies,
    ...Object.fromEntries(
      Object.entries(jsonAt('peers/langfuse/package.json').dependencies).map(([name, version]) => [
        name.startsWith('@langfuse/') ? name : `${name} for langfuse`,
        version,
      ]),
    ),
  };
}

function buildHash() {
  const dist = new URL('../dist/', import.meta.url);
  const files = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.js'));
  const hash = createHash('sha256');
  for (const file of files.sort()) hash.update(readFileSync(new URL(file.replaceAll('\\', '/'), dist)));
  return hash.digest('hex').slice(0, 12);
}

function jsonAt(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
