import { lstat, readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import type ignore from 'ignore';
import type { ValidationError } from '../../errors.ts';

interface SourceFiles {
  /** Sorted paths of files and links, relative to the directory, with forward slashes. */
  readonly paths: readonly string[];
  /** Errors for links that point outside the directory. */
  readonly errors: readonly ValidationError[];
}

/** Lists the files in a directory, except ignored files. Links are not followed. */
export async function sourceFiles(directory: string, signal: AbortSignal | undefined): Promise<SourceFiles> {
  const root = await realpath(directory);
  const paths: string[] = [];
  const errors: ValidationError[] = [];
  const { default: make } = await import('ignore');
  const gitRules = async (folder: string): Promise<Matcher> =>
    make(CASE).add(await textOf(join(root, folder, '.gitignore')));
  const visit = async (folder: string, rules: IgnoreRules): Promise<void> => {
    signal?.throwIfAborted();
    for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
      const path = folder + entry.name + (entry.isDirectory() ? '/' : '');
      if (isIgnored(path, rules)) continue;
      if (entry.isDirectory())
        await visit(path, { ...rules, above: rules, directory: path, git: await gitRules(path) });
      else if (entry.isSymbolicLink() && (await leadsOut(root, path))) {
        errors.push({ loc: ['source', path], msg: 'The link leads outside the directory', type: 'value_error' });
      } else if (entry.isFile() || entry.isSymbolicLink()) paths.push(path);
    }
  };
  const dockerignore = await textOf(join(root, '.dockerignore'));
  const docker = dockerignore.split(/\r?\n/).flatMap((line) => dockerRule(make, line));
  await visit('', { above: undefined, directory: '', git: await gitRules(''), docker });
  return { paths: paths.sort(), errors };
}

/** Returns whether a link points outside the directory, directly or through other links. */
async function leadsOut(root: string, path: string): Promise<boolean> {
  const target = await readlink(join(root, path));
  if (isAbsolute(target) || isOutside(root, resolve(root, dirname(path), target))) return true;
  // A link to a missing target is packed unchanged.
  const real = await realpath(join(root, path)).catch(() => undefined);
  return real !== undefined && isOutside(root, real);
}

function isOutside(root: string, path: string): boolean {
  const from = relative(root, path);
  return from === '..' || from.startsWith(`..${sep}`) || isAbsolute(from);
}

/** Reads a text file. Returns an empty string if the file does not exist. */
async function textOf(path: string): Promise<string> {
  const isFile = await lstat(path).then(
    (stats) => stats.isFile(),
    () => false,
  );
  return isFile ? readFile(path, 'utf8') : '';
}

type MakeIgnore = typeof ignore;
type Matcher = ReturnType<MakeIgnore>;

/** Directories to skip: the build does not need `.git` and installs `node_modules` itself. */
const NEVER: ReadonlySet<string> = new Set(['.git', 'node_modules']);

const CASE = { ignorecase: false };

/**
 * Ignore rules for one directory. The rules come from the root's `.dockerignore` and from all `.gitignore` files from
 * the root down to the directory.
 */
interface IgnoreRules {
  /** The rules of the parent directory. Undefined for the root. */
  readonly above: IgnoreRules | undefined;
  /** Path of the directory, which ends with a slash. Empty for the root. */
  readonly directory: string;
  readonly git: Matcher;
  readonly docker: readonly DockerRule[];
}

/** Returns whether a path is ignored. Directory paths must end with a slash. */
function isIgnored(path: string, rules: IgnoreRules): boolean {
  const name = path.replace(/\/$/, '').split('/').at(-1) ?? '';
  return NEVER.has(name) || isIgnoredByGit(path, rules) === true || isIgnoredByDocker(path, rules);
}

/** Applies the closest `.gitignore` file with a matching rule, like git. Returns undefined if no rule matches. */
function isIgnoredByGit(path: string, { above, directory, git }: IgnoreRules): boolean | undefined {
  const below = path.slice(directory.length);
  const parent = below.replace(/[^/]+\/?$/, '');
  // Ignored directories are never visited. If this file ignores the parent directory, a closer `.gitignore` file must
  // have included it again.
  const isIncluded = parent !== '' && git.test(parent).ignored;
  const { ignored, unignored } = isIncluded ? { ignored: false, unignored: false } : git.test(below);
  if (ignored || unignored) return ignored;
  return above === undefined ? undefined : isIgnoredByGit(path, above);
}

/** Applies the last matching rule, like Docker. A rule for a directory also applies to the files in it. */
function isIgnoredByDocker(path: string, { docker }: IgnoreRules): boolean {
  const isMatched = docker.findLast(({ matcher }) => matcher.ignores(path))?.isNegative === false;
  // A negated rule may re-include a file in an ignored directory.
  return isMatched && !(path.endsWith('/') && docker.some(({ isNegative }) => isNegative));
}

interface DockerRule {
  readonly matcher: Matcher;
  readonly isNegative: boolean;
}

/** Parses a line in `.dockerignore`. Docker's patterns are relative to the root, unlike git's. */
function dockerRule(make: MakeIgnore, line: string): DockerRule[] {
  const text = line.trim();
  if (text === '' || text.startsWith('#')) return [];
  const isNegative = text.startsWith('!');
  const pattern = text
    .slice(isNegative ? 1 : 0)
    .trim()
    .replace(/^(\.?\/)+/, '')
    .replace(/(?<!\/)\/+$/, '');
  return pattern === '' || pattern === '.' ? [] : [{ matcher: make(CASE).add(`/${pattern}`), isNegative }];
}
