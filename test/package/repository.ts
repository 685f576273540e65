import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/folders.ts';

interface Manifest {
  readonly version: string;
  readonly type: string;
  readonly homepage: string;
  readonly bugs: string;
  readonly repository: { readonly url: string };
  readonly publishConfig: unknown;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly import: string; readonly require: string }>>;
  readonly sideEffects: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

export const manifest: Manifest = JSON.parse(read('package.json'));

/** The names of the entry points: `index`, `otel`, … */
export const entries: readonly string[] = Object.values(manifest.exports).flatMap((target) =>
  typeof target === 'string' ? [] : [target.import.replace(/^\.\/dist\/(.+)\.js$/, '$1')],
);

/** Reads a file of the repository. */
export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** Returns the relative paths of the files with this ending below a folder of the repository, except in `node_modules`. */
export function filesUnder(folder: string, ending: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules' && name !== '.next')
    .flatMap((entry) => {
      if (!entry.isDirectory()) return entry.isFile() && entry.name.endsWith(ending) ? [entry.name] : [];
      return filesUnder(`${folder}/${entry.name}`, ending).map((path) => `${entry.name}/${path}`);
    })
    .sort();
}

/** The pages of docs/ without the generated ones, which contain signatures instead of programs, and without the site's packages. */
export const guides: readonly string[] = filesUnder('docs', '.md')
  .filter((path) => !/^(reference|site)\//.test(path))
  .map((path) => `docs/${path}`);
