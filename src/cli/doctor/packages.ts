import { type Dirent, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Finding, ok, warn } from './finding.ts';

/** In a larger tree, some folders are not searched. */
const FOLDERS_MAX = 50_000;

/** The packages of OpenTelemetry that `runspan/otel` works with. */
const COMPATIBLE: Readonly<
  Record<string, { readonly range: string; readonly isCompatible: (version: string) => boolean }>
> = {
  '@opentelemetry/api': {
    range: '1.4 or later of 1.x',
    isCompatible: (version) => majorOf(version) === 1 && Number(version.split('.')[1]) >= 4,
  },
  '@opentelemetry/sdk-trace-base': {
    range: '1.x, 2.x or 3.x',
    isCompatible: (version) => majorOf(version) >= 1 && majorOf(version) <= 3,
  },
};

/** An installed copy of a package. */
interface Copy {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

/** Checks the copies of runspan and of OpenTelemetry that a program in the folder can load. */
export function* packageFindings(folder: string): Generator<Finding> {
  const copies = installedCopies(folder, ['runspan', ...Object.keys(COMPATIBLE)]);
  const of = (name: string): Copy[] => copies.filter((copy) => copy.name === name);
  yield copiesFinding(of('runspan'));
  for (const name of Object.keys(COMPATIBLE)) yield otelFinding(name, of(name));
}

function copiesFinding(copies: readonly Copy[]): Finding {
  const check = 'copies of runspan';
  if (copies.length === 0) return ok(check, `none in node_modules here; this command is in ${ownFolder()}`);
  const list = copies.map(({ version, folder }) => `${version} in ${folder}`).join(', ');
  if (copies.length === 1) return ok(check, list);
  return warn(
    check,
    `${copies.length}: ${list}`,
    'each copy has separate settings and a separate queue; run npm dedupe, or use one version everywhere',
  );
}

function otelFinding(name: string, copies: readonly Copy[]): Finding {
  const known = COMPATIBLE[name];
  const [first] = copies;
  if (known === undefined || first === undefined) return ok(name, 'not installed; only runspan/otel needs it');
  const versions = [...new Set(copies.map(({ version }) => version))].join(', ');
  const incompatible = copies.find(({ version }) => !known.isCompatible(version));
  if (incompatible !== undefined) {
    return warn(
      name,
      `${incompatible.version} in ${incompatible.folder} is not supported`,
      `install ${known.range} for runspan/otel`,
    );
  }
  // Several copies share their state through a global.
  return ok(name, `${versions}${copies.length > 1 ? ` (${copies.length} copies)` : ''}`);
}

/** Searches the `node_modules` of the folder and of the folders above it. A copy is returned once, even if links lead to it. */
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
    // pnpm keeps each package in a folder in `.pnpm`.
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

/** Returns undefined for another package in this folder, for example an alias. */
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
  return fileURLToPath(new URL('../../../', import.meta.url));
}
