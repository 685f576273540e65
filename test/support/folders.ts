import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root: string = fileURLToPath(new URL('../..', import.meta.url));

/** Resolves `#src/…` in tests, so that a test names a source file by its path in `src/`. */
export const alias: Readonly<Record<string, string>> = { '#src': join(root, 'src') };

/** Creates a folder, by default in the folder for temporary files. `remove` deletes it with its content. */
export function temporaryFolder(within = tmpdir()): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(within, 'runspan-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) };
}

/** Links this repository, and some of its packages, into the packages of a project, which has none. */
export function linkRunspan(project: string, packages: readonly string[] = []): void {
  const folder = join(project, 'node_modules');
  mkdirSync(folder);
  symlinkSync(root, join(folder, 'runspan'));
  for (const name of packages) symlinkSync(join(root, 'node_modules', name), join(folder, name));
}
