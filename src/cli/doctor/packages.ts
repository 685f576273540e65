import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ignoreErrors } from '../../base/guard.ts';
import { PACKAGE_FOLDER } from '../command-line.ts';
import { type Finding, ok, warn } from './finding.ts';

/** Maximum number of folders to search. */
const FOLDERS_MAX = 50_000;

interface Versions {
  readonly range: string;
  readonly has: (major: number, minor: number) => boolean;
}

/** The OpenTelemetry packages and versions that `runspan/otel` supports. */
const OTEL: Readonly<Record<string, Versions>> = {
  '@opentelemetry/api': { range: '1.4 or later of 1.x', has: (major, minor) => major === 1 && minor >= 4 },
  '@opentelemetry/sdk-trace': { range: '2.x or 3.x', has: (major) => major === 2 || major === 3 },
  '@opentelemetry/sdk-trace-base': { range: '1.x or 2.x', has: (major) => major === 1 || major === 2 },
};

interface Copy {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

/** Checks the installed copies of runspan and OpenTelemetry that a program in `folder` can load. */
export function* packageFindings(folder: string): Generator<Finding> {
  const copies = installedCopies(folder, ['runspan', ...Object.keys(OTEL)]);
  yield copiesFinding(copies.filter(({ name }) => name === 'runspan'));
  for (const [name, versions] of Object.entries(OTEL)) {
    const installed = copies.filter((copy) => copy.name === name);
    yield otelFinding(name, versions, installed);
  }
}

function copiesFinding(copies: readonly Copy[]): Finding {
  const check = 'copies of runspan';
  const list = copies.map(({ version, folder }) => `${version} in ${folder}`).join(', ');
  if (copies.length === 0)
    return ok(check, `none in the node_modules of this folder; this command is in ${PACKAGE_FOLDER}`);
  if (new Set(copies.map(({ version }) => version)).size === 1) return ok(check, list);
  return warn(
    check,
    `${copies.length}: ${list}`,
    'each version has separate settings and a separate queue; run npm dedupe, or use one version everywhere',
  );
}

/**
 * Reports the installed copies of an OpenTelemetry package. Several copies are fine, because they share their state.
 */
function otelFinding(name: string, { range, has }: Versions, copies: readonly Copy[]): Finding {
  if (copies.length === 0) return ok(name, 'not installed; only runspan/otel needs it');
  for (const { version, folder } of copies) {
    const [major = 0, minor = 0] = version.split('.').map(Number);
    if (!has(major, minor)) {
      return warn(name, `${version} in ${folder} is not supported`, `install ${range} for runspan/otel`);
    }
  }
  const versions = [...new Set(copies.map(({ version }) => version))].join(', ');
  return ok(name, `${versions}${copies.length > 1 ? ` (${copies.length} copies)` : ''}`);
}

/**
 * Searches all `node_modules` folders that Node would search. If several links point to a copy, it is returned once.
 */
function installedCopies(folder: string, names: readonly string[]): Copy[] {
  const found = new Map<string, Copy>();
  const seen = new Set<string>();
  const pending = nodeModulesFor(folder);
  for (let next = pending.pop(); next !== undefined && seen.size < FOLDERS_MAX; next = pending.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    for (const name of packagesIn(next)) {
      const path = ignoreErrors(() => realpathSync(join(next, name)));
      if (path === undefined) continue;
      const version = names.includes(name) ? ignoreErrors(() => versionIn(path, name)) : undefined;
      if (version !== undefined) found.set(path, { name, version, folder: path });
      // A package may be a link, for example into pnpm's store. Node searches for the package's dependencies near the
      // link target.
      pending.push(...nodeModulesFor(path));
    }
  }
  return [...found.values()].sort((a, b) => (a.folder < b.folder ? -1 : 1));
}

/** Returns the folders that Node searches for packages imported by a file in `folder`. */
function nodeModulesFor(folder: string): string[] {
  const above = dirname(folder);
  return [join(folder, 'node_modules'), ...(above === folder ? [] : nodeModulesFor(above))];
}

function packagesIn(nodeModules: string): string[] {
  const names = (folder: string): string[] => ignoreErrors(() => readdirSync(folder)) ?? [];
  return names(nodeModules).flatMap((name) =>
    name.startsWith('@') ? names(join(nodeModules, name)).map((inner) => `${name}/${inner}`) : name,
  );
}

/**
 * Returns the version of the package in a folder. Returns undefined if the package has another name, as with an alias.
 */
function versionIn(folder: string, name: string): string | undefined {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>;
  return manifest.name === name && typeof manifest.version === 'string' ? manifest.version : undefined;
}
