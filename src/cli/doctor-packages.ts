import { type Dirent, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Finding, ok, warn } from './finding.ts';

/** Folders that are looked into; a tree that is larger is looked at in part. */
const FOLDERS_MAX = 50_000;

/** The packages of OpenTelemetry that matter here, and which of their versions fit. */
const FITTING: Readonly<Record<string, { readonly range: string; readonly fits: (version: string) => boolean }>> = {
  '@opentelemetry/api': {
    range: '1.4 or later of 1.x',
    fits: (version) => majorOf(version) === 1 && Number(version.split('.')[1]) >= 4,
  },
  '@opentelemetry/sdk-trace-base': {
    range: '1.x, 2.x or 3.x',
    fits: (version) => majorOf(version) >= 1 && majorOf(version) <= 3,
  },
};

/** A copy of a package, as it is installed. */
interface Copy {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

/** Copies of this package that a program in the folder may load, and what it has of OpenTelemetry. */
export function* packageFindings(folder: string): Generator<Finding> {
  const copies = installedCopies(folder, ['runspan', ...Object.keys(FITTING)]);
  const of = (name: string): Copy[] => copies.filter((copy) => copy.name === name);
  yield copiesFinding(of('runspan'));
  for (const name of Object.keys(FITTING)) yield otelFinding(name, of(name));
}

function copiesFinding(copies: readonly Copy[]): Finding {
  const check = 'copies of runspan';
  if (copies.length === 0) return ok(check, `none in node_modules here; this is ${ownFolder()}`);
  const told = copies.map(({ version, folder }) => `${version} in ${folder}`).join(', ');
  if (copies.length === 1) return ok(check, told);
  return warn(
    check,
    `${copies.length}: ${told}`,
    'each has settings and a queue of its own; npm dedupe, or one version for all, leaves one',
  );
}

function otelFinding(name: string, copies: readonly Copy[]): Finding {
  const known = FITTING[name];
  const [first] = copies;
  if (known === undefined || first === undefined) return ok(name, 'not installed; runspan/otel alone needs it');
  const told = [...new Set(copies.map(({ version }) => version))].join(', ');
  const misfit = copies.find(({ version }) => !known.fits(version));
  if (misfit !== undefined) {
    return warn(name, `${misfit.version} in ${misfit.folder} does not fit`, `runspan/otel needs ${known.range}`);
  }
  // Several of them work as one where the older does not know more than the newer: they share a global.
  return ok(name, `${told}${copies.length > 1 ? ` (${copies.length} copies)` : ''}`);
}

/** Each copy once, wherever links lead to it: in the `node_modules` above the folder, and in all that is within them. */
function installedCopies(folder: string, names: readonly string[]): Copy[] {
  const found = new Map<string, Copy>();
  const seen = new Set<string>();
  const pending = nodeModulesAbove(folder);
  for (let next = pending.pop(); next !== undefined && seen.size < FOLDERS_MAX; next = pending.pop()) {
    const real = realPathOf(next);
    if (real === undefined || seen.has(real)) continue;
    seen.add(real);
    for (const name of packagesIn(real)) {
      const path = realPathOf(join(real, name));
      if (path === undefined) continue;
      if (names.includes(name)) {
        const version = versionIn(path, name);
        if (version !== undefined) found.set(path, { name, version, folder: path });
      }
      pending.push(join(path, 'node_modules'));
    }
    // pnpm keeps every package in a folder of its own there.
    for (const { name } of entriesOf(join(real, '.pnpm'))) pending.push(join(real, '.pnpm', name, 'node_modules'));
  }
  return [...found.values()].sort((a, b) => (a.folder < b.folder ? -1 : 1));
}

function nodeModulesAbove(folder: string): string[] {
  const above = dirname(folder);
  return [join(folder, 'node_modules'), ...(above === folder ? [] : nodeModulesAbove(above))];
}

function packagesIn(nodeModules: string): string[] {
  return entriesOf(nodeModules).flatMap(({ name }) => {
    if (name.startsWith('.')) return [];
    return name.startsWith('@') ? entriesOf(join(nodeModules, name)).map((entry) => `${name}/${entry.name}`) : name;
  });
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter(
      (entry) => entry.isDirectory() || entry.isSymbolicLink(),
    );
  } catch {
    return [];
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** Undefined where it is another package under that name, an alias for example, or none. */
function versionIn(folder: string, name: string): string | undefined {
  try {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>;
    return manifest.name === name && typeof manifest.version === 'string' ? manifest.version : undefined;
  } catch {
    return undefined;
  }
}

function majorOf(version: string): number {
  return Number.parseInt(version, 10);
}

function ownFolder(): string {
  return fileURLToPath(new URL('../..', import.meta.url));
}
