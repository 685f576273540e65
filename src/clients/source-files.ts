import { lstat, readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { mistake } from './field-check.ts';
import { IgnoreRules } from './ignore-rules.ts';
import type { ValidationError } from './validation-error.ts';

/** What of a directory is its source. */
export interface SourceFiles {
  /** Files and links, as paths from the directory with slashes, in the order of their characters. */
  readonly paths: readonly string[];
  /** Links that lead out of the directory, each a mistake. */
  readonly errors: readonly ValidationError[];
}

/** Goes through a directory, without what its ignore files leave out. Links are not followed. */
export async function sourceFiles(directory: string, signal: AbortSignal | undefined): Promise<SourceFiles> {
  const root = await realpath(directory);
  const paths: string[] = [];
  const errors: ValidationError[] = [];
  const visit = async (folder: string, rules: IgnoreRules): Promise<void> => {
    signal?.throwIfAborted();
    for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
      const path = folder + entry.name + (entry.isDirectory() ? '/' : '');
      if (rules.leavesOut(path)) continue;
      if (entry.isDirectory()) await visit(path, rules.below(path, await textOf(join(root, path, '.gitignore'))));
      else if (entry.isSymbolicLink() && (await leadsOut(root, path))) {
        errors.push(mistake(['source', path], 'A link that leads out of the directory'));
      } else if (entry.isFile() || entry.isSymbolicLink()) paths.push(path);
    }
  };
  const [gitignore, dockerignore] = [await textOf(join(root, '.gitignore')), await textOf(join(root, '.dockerignore'))];
  const { default: ignore } = await import('ignore');
  await visit('', IgnoreRules.ofRoot(ignore, gitignore, dockerignore));
  return { paths: paths.sort(), errors };
}

/** Whether a link cannot be the same elsewhere: its text leads out, or where it leads to in the end is outside. */
async function leadsOut(root: string, path: string): Promise<boolean> {
  const target = await readlink(join(root, path));
  if (isAbsolute(target) || isOutside(root, resolve(root, dirname(path), target))) return true;
  // A link that leads nowhere is taken as it is.
  const real = await realpath(join(root, path)).catch(() => undefined);
  return real !== undefined && isOutside(root, real);
}

function isOutside(root: string, path: string): boolean {
  const from = relative(root, path);
  return from === '..' || from.startsWith(`..${sep}`) || isAbsolute(from);
}

/** Empty where there is no such file. */
async function textOf(path: string): Promise<string> {
  const isFile = await lstat(path).then(
    (stats) => stats.isFile(),
    () => false,
  );
  return isFile ? readFile(path, 'utf8') : '';
}
