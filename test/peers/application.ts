import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { installedAbove } from '../package/installs.ts';
import { read } from '../package/repository.ts';
import { type Snippet, snippetsOf } from '../package/snippets.ts';
import { root, temporaryFolder } from '../support/folders.ts';

/** The folders with packages of which guides are made: those of today, and those that need an earlier OpenTelemetry. */
const FOLDERS = ['today', 'otel'];

/** Writes this code to a file in a folder that has the packages of `otel/`, and the checkout itself as `runspan`. */
export function asApplication(code: string): string {
  return written(
    code,
    readdirSync(modulesOf('otel')).map((name) => join(modulesOf('otel'), name)),
  );
}

/**
 * Writes this code to a file in a folder that has these versions of packages, and the checkout itself as `runspan`. As
 * many packages as possible are from one folder, because packages of OpenTelemetry share state.
 */
export function asInstalled(code: string, packages: ReadonlyMap<string, string>): string {
  const wanted = [...packages].filter(([name]) => name !== 'runspan');
  const countIn = (folder: string): number =>
    wanted.filter(([name, version]) => isInstalled(modulesOf(folder), name, version)).length;
  const folders = [...FOLDERS].sort((one, other) => countIn(other) - countIn(one));
  return written(
    code,
    wanted.map(([name, version]) => {
      const folder = folders.find((one) => isInstalled(modulesOf(one), name, version));
      if (folder === undefined) throw new Error(`${FOLDERS.join(' and ')} have no ${name}@${version}`);
      return join(modulesOf(folder), name);
    }),
  );
}

/** Returns whether a folder of modules has a version of a package, for example 7 or 0.301. */
export function isInstalled(modules: string, name: string, version: string): boolean {
  const path = join(modules, name, 'package.json');
  return existsSync(path) && `${JSON.parse(readFileSync(path, 'utf8')).version}.`.startsWith(`${version}.`);
}

function written(code: string, packages: readonly string[]): string {
  const folder = temporaryFolder();
  onTestFinished(folder.remove);
  const modules = join(folder.path, 'node_modules');
  for (const path of [...packages, root]) {
    const name = path === root ? 'runspan' : (path.split('/node_modules/').at(-1) ?? '');
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(path, join(modules, name));
  }
  const path = join(folder.path, 'program.mjs');
  writeFileSync(path, code);
  return path;
}

function modulesOf(folder: string): string {
  return fileURLToPath(new URL(`./${folder}/node_modules`, import.meta.url));
}

export function snippetsIn(page: string): Snippet[] {
  return snippetsOf(page, read(page));
}

export function packagesFor({ place }: Snippet): ReadonlyMap<string, string> {
  const [page = '', line] = place.split(':');
  return installedAbove(read(page), Number(line));
}

/** Returns the snippet of docs/opentelemetry.md whose code contains the text. */
export function snippetWith(text: string): Snippet {
  const [snippet] = snippetsIn('docs/opentelemetry.md').filter(({ code }) => code.includes(text));
  if (snippet === undefined) throw new Error(`docs/opentelemetry.md has no snippet with ${text}`);
  return snippet;
}
