import type ignore from 'ignore';

/** What is never a part of a source: it is fetched or made where the source is built. */
const NEVER: ReadonlySet<string> = new Set(['.git', 'node_modules']);

const CASE = { ignorecase: false };

/** What makes matchers; the package is loaded when it is needed. */
type Ignore = ReturnType<typeof ignore>;
type MakeIgnore = typeof ignore;

/** What a path is to rules: `undefined` where they do not say. */
type SamplingResult = boolean | undefined;

/** The rules of the `.gitignore` files of a directory and those above it, up to the root of the source, and of its `.dockerignore`. */
export class IgnoreRules {
  readonly #make: MakeIgnore;
  readonly #above: IgnoreRules | undefined;
  readonly #directory: string;
  readonly #git: Ignore;
  readonly #docker: readonly DockerRule[];

  private constructor(
    make: MakeIgnore,
    above: IgnoreRules | undefined,
    directory: string,
    git: string,
    docker: string,
  ) {
    this.#make = make;
    this.#above = above;
    this.#directory = directory;
    this.#git = make(CASE).add(git);
    this.#docker = docker.split(/\r?\n/).flatMap((line) => dockerRule(make, line));
  }

  static ofRoot(make: MakeIgnore, gitignore: string, dockerignore: string): IgnoreRules {
    return new IgnoreRules(make, undefined, '', gitignore, dockerignore);
  }

  /** Those for a directory, by its path from the root with a slash at its end. */
  below(directory: string, gitignore: string): IgnoreRules {
    return new IgnoreRules(this.#make, this, directory, gitignore, '');
  }

  /** Whether a path from the root is left out; that of a directory ends with a slash. */
  leavesOut(path: string): boolean {
    const name = path.replace(/\/$/, '').split('/').at(-1) ?? '';
    return NEVER.has(name) || this.#gitVerdict(path) === true || this.#root.#dockerLeavesOut(path);
  }

  /** The file that is nearest decides, as git has it. */
  #gitVerdict(path: string): SamplingResult {
    const below = path.slice(this.#directory.length);
    const parent = below.replace(/[^/]+\/?$/, '');
    // What is left out because of a directory was decided there, and a nearer file said otherwise.
    const isDecided = parent !== '' && this.#git.test(parent).ignored;
    const { ignored, unignored } = isDecided ? { ignored: false, unignored: false } : this.#git.test(below);
    if (ignored || unignored || this.#above === undefined) return ignored || (unignored ? false : undefined);
    return this.#above.#gitVerdict(path);
  }

  /** The last rule that is met decides, and what it says of a directory holds for all in it, as Docker has it. */
  #dockerLeavesOut(path: string): boolean {
    const rules = this.#docker;
    const isLeftOut = rules.findLast(({ matcher }) => matcher.ignores(path))?.isNegative === false;
    // Something in the directory may be taken in again.
    return isLeftOut && !(path.endsWith('/') && rules.some(({ isNegative }) => isNegative));
  }

  get #root(): IgnoreRules {
    return this.#above === undefined ? this : this.#above.#root;
  }
}

interface DockerRule {
  readonly matcher: Ignore;
  readonly isNegative: boolean;
}

/** Unlike those of git, its patterns are all meant from the root. */
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
